"""What a driver does, and the client's side of the measurements.

Needs only the standard library, except for uvloop. A driver is run in the environment of its
library as `python -m tests.bench.drivers.NAME`:

    work             run the worker until it is killed
    one JOB N        put N jobs, each awaited before the next
    together JOB N   put N jobs by 100 concurrent callers, each awaiting its own
    many JOB N       put N jobs with the library's bulk call
    paced JOB N      put N jobs at intervals, with the time of the call as argument
    steady N S T     print `ready`, wait for a line, then put N jobs: one each S seconds from T
                     seconds on, each with the time of the call as argument; S is 0 for at once

All commands except `work` print {jobs, seconds, cpu} as JSON. There are five jobs: `noop`; `sleep`,
which takes 10 ms; `pick_up`, which records the time since its argument; `arrive`, which collects
it; `hang`, which records its start and does not end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

CALLERS = 100
CONCURRENCY = 100
PACE = 0.03  # seconds between two paced jobs
ARGUMENT = {"id": 12345, "email": "someone@example.com"}  # the only argument of a job
URL = os.environ.get("BENCH_URL", "redis://127.0.0.1:6379/0")


class Driver:
    """A queue library, used as its own documentation says."""

    async def connect(self) -> None:
        """Open the client."""

    async def put(self, job: str, argument: Any) -> None:
        """Put one job and wait for the acknowledgement by Redis."""
        raise NotImplementedError

    async def put_many(self, job: str, argument: Any, count: int) -> None:
        """Put many equal jobs with the library's bulk call."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the client."""

    def work(self) -> None:
        """Run a worker until killed."""
        raise NotImplementedError


def main(driver: Driver) -> None:
    """Run the command in argv."""
    what, *arguments = sys.argv[1:]
    if what == "work":
        driver.work()
        return
    if what == "steady":
        print(json.dumps(run(_put_steadily(driver, *map(float, arguments)))))
        return
    job, count = arguments
    print(json.dumps(run(_put(driver, what, job, int(count)))))


def run(coroutine: Any) -> Any:
    """Run on uvloop where it is installed, as it is for all asynchronous libraries."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


async def _put(driver: Driver, what: str, job: str, count: int) -> dict[str, float]:
    await driver.connect()
    if what != "paced":
        await driver.put("noop", ARGUMENT)  # the first put also connects and loads scripts
    began, cpu = time.perf_counter(), time.process_time()
    match what:
        case "one":
            for _ in range(count):
                await driver.put(job, ARGUMENT)
        case "together":
            await _put_together(driver, job, count)
        case "many":
            await driver.put_many(job, ARGUMENT, count)
        case "paced":
            for _ in range(count):
                await driver.put(job, time.time())
                await asyncio.sleep(PACE)
        case _:
            raise ValueError(f"unknown way to put: {what}")
    figures = {
        "jobs": count,
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
    }
    await driver.close()
    return figures


async def _put_steadily(
    driver: Driver, count: float, interval: float, offset: float
) -> dict[str, float]:
    await driver.connect()
    await driver.put("noop", ARGUMENT)
    print("ready", flush=True)
    sys.stdin.readline()
    began, cpu = time.perf_counter(), time.process_time()
    for number in range(int(count)):
        if (left := began + offset + number * interval - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        await driver.put("arrive", time.time())
    figures = {
        "jobs": count,
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
    }
    await driver.close()
    return figures


async def _put_together(driver: Driver, job: str, count: int) -> None:
    turns = iter(range(count))

    async def caller() -> None:
        for _ in turns:
            await driver.put(job, ARGUMENT)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
