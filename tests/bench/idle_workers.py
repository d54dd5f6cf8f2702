"""How many idle workers pop without a result for each job, and how soon it starts.

`python -m tests.bench.idle_workers [jobs]` puts jobs one by one, while real workers wait for them.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aioqless import Client, Job, Settings, Worker, job
from tests.bench.server import Server, server

PROCESSES = 10
COUNTS = (1, 10, 100)
INTERVAL = 0.05  # seconds between two puts
BOUND = 120.0  # seconds in which workers start, and jobs run


async def work(url: str, count: int, process: str) -> None:
    """Run workers in this process; their jobs note how long after the put they run."""
    async with Client(url) as client, asyncio.TaskGroup() as workers:

        @job(klass="Note")
        async def note(job: Job, put_at: float) -> None:
            await client.redis.rpush("latencies", str(time.time() - put_at))

        for number in range(count):
            name = f"{process}-{number}"
            worker = Worker(client, note, name=name, settings=Settings(queues=("q",)))
            workers.create_task(worker.run())


@contextmanager
def running(url: str, count: int) -> Iterator[None]:
    """Run idle workers in some processes."""
    shares = [len(range(number, count, PROCESSES)) for number in range(min(count, PROCESSES))]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.bench.idle_workers", url, str(share), str(number)],
            stderr=subprocess.DEVNULL,  # the workers' logs
        )
        for number, share in enumerate(shares)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(BOUND)


async def measure(redis: Server, jobs: int) -> tuple[float, float, float]:
    """Put jobs; return the pops without a job for each, the median latency, and the longest."""
    redis.redis.config_resetstat()
    redis.redis.delete("latencies")
    async with Client(redis.url) as client:
        for _ in range(jobs):
            await client.queue("q").put("Note", {"put_at": time.time()})
            await asyncio.sleep(INTERVAL)
    seconds: list[float] = []
    while len(seconds) < jobs:
        seconds.append(float(redis.redis.blpop("latencies", BOUND)[1]))
    pops = redis.redis.info("commandstats")["cmdstat_zpopmax"]["calls"]  # one in each pop
    return (pops - jobs) / jobs, statistics.median(seconds), max(seconds)


def main(jobs: int) -> None:
    """Print a table; the first puts, from which workers learn, have a row of their own."""
    print("| idle workers | puts | other pops for each | median until it runs | maximum |")
    print("|---|---|---|---|---|")
    for count in COUNTS:
        with server() as redis, running(redis.url, count):
            end = time.monotonic() + BOUND
            while redis.redis.pubsub_numsub("ql:log")[0][1] < count:  # idle ones listen to it
                if time.monotonic() > end:
                    raise TimeoutError(f"{count} workers were not idle within {BOUND:.0f} s")
                time.sleep(0.1)
            for puts in (20, jobs):
                vain, median, longest = asyncio.run(measure(redis, puts))
                print(
                    f"| {count} | {puts} | {vain:.2f} | {1000 * median:.1f} ms |"
                    f" {1000 * longest:.0f} ms |",
                    flush=True,
                )


def run(arguments: Sequence[str]) -> None:
    """Run the benchmark, or the workers of one of its processes."""
    if len(arguments) > 1:
        asyncio.run(work(arguments[0], int(arguments[1]), arguments[2]))
    else:
        main(int(arguments[0]) if arguments else 400)


if __name__ == "__main__":
    run(sys.argv[1:])
