"""What output costs Redis: `python -m tests.bench.output [jobs] [values per second] [seconds]`.

Each job emits values of the size of a token; a client reads all of them. The processor time is
Redis' own, so that other load on the machine doesn't count.
"""

from __future__ import annotations

import asyncio
import sys
import time

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.output import Emitted
from aioqless.testing import server


@job(klass="speak", output_ttl=60)
async def speak(job: Job, rate: int, seconds: float) -> None:
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        for _ in range(sent, int(passed * rate)):
            job.emit(" token")
            sent += 1
        await asyncio.sleep(0.01)


async def used_cpu(client: Client) -> float:
    """Return the processor time that Redis has used, in seconds."""
    info = await client.redis.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def read(client: Client, jid: str) -> int:
    """Return the number of values of a job."""
    return sum([isinstance(each, Emitted) async for each in client.jobs.output(jid)])


async def measure(url: str, jobs: int, rate: int, seconds: float, *, readers: bool) -> str:
    """Run jobs that emit; return what it cost Redis."""
    async with Client(url) as client, Client(url) as site:
        jids = [await client.put(speak.data(rate=rate, seconds=seconds)) for _ in range(jobs)]
        before, begun = await used_cpu(client), time.monotonic()
        reading = [asyncio.create_task(read(site, jid)) for jid in jids] if readers else []
        settings = Settings(concurrency=jobs, burst=True)
        await Worker(client, speak, settings=settings).run()
        used, passed = await used_cpu(client) - before, time.monotonic() - begun
        values = sum([await each for each in reading] or [await read(site, jid) for jid in jids])
    return (
        f"{'with' if readers else 'without'} readers: {values / passed:,.0f} values/s, "
        f"Redis {used / passed:.1%} of a core"
    )


def main(jobs: int = 100, rate: int = 100, seconds: int = 10) -> None:
    """Measure with readers and without."""
    for readers in (False, True):
        with server() as url:
            print(asyncio.run(measure(url, jobs, rate, seconds, readers=readers)), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
