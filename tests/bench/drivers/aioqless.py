"""The driver for aioqless: the worker of the command line with all defaults except concurrency."""

import asyncio
import os
import sys
import time
from typing import Any

from aioqless import Client, Job, NewJob, job
from tests.bench import driver
from tests.bench.meters import Delays, Tally, expected, note, out

tally = Tally(expected(), out())
delays = Delays(expected(), out())


@job(klass="noop")
async def noop(job: Job, id: int, email: str) -> None:
    tally.start()
    tally.end()


@job(klass="sleep")
async def sleep(job: Job, id: int, email: str) -> None:
    tally.start()
    await asyncio.sleep(0.01)
    tally.end()


@job(klass="pick_up")
async def pick_up(job: Job[float]) -> None:
    note(time.time() - job.data)


@job(klass="arrive")
async def arrive(job: Job[float]) -> None:
    delays.add(time.time() - job.data)


@job(klass="hang")
async def hang(job: Job) -> None:
    note(time.time())
    await asyncio.sleep(3600)


JOBS = {"noop": noop, "sleep": sleep, "pick_up": pick_up, "arrive": arrive, "hang": hang}


class Aioqless(driver.Driver):
    async def connect(self) -> None:
        self.client = await Client(driver.URL).__aenter__()
        self.queue = self.client.queue("default")

    async def put(self, job: str, argument: Any) -> None:
        await self.queue.put(JOBS[job], argument)  # type: ignore[arg-type]

    async def put_many(self, job: str, argument: Any, count: int) -> None:
        await self.queue.put_many(NewJob(JOBS[job], argument) for _ in range(count))  # type: ignore[arg-type]

    async def close(self) -> None:
        await self.client.__aexit__()

    def work(self) -> None:
        command = ["-m", "aioqless", "worker", "tests.bench.drivers.aioqless", "--url", driver.URL]
        os.execv(
            sys.executable,
            [sys.executable, *command, "-c", str(driver.CONCURRENCY), "--log-level", "warning"],
        )


if __name__ == "__main__":
    driver.main(Aioqless())
