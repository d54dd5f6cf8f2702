"""The driver for taskiq with the stream broker of taskiq-redis, the broker that acknowledges.

taskiq has no bulk put.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from taskiq_redis import RedisStreamBroker

from tests.bench import driver
from tests.bench.meters import Tally, expected, note, out

tally = Tally(expected(), out())
broker = RedisStreamBroker(driver.URL)


@broker.task(task_name="noop")
async def noop(argument: Any) -> None:
    tally.start()
    tally.end()


@broker.task(task_name="sleep")
async def sleep(argument: Any) -> None:
    tally.start()
    await asyncio.sleep(0.01)
    tally.end()


@broker.task(task_name="pick_up")
async def pick_up(argument: float) -> None:
    note(time.time() - argument)


@broker.task(task_name="hang")
async def hang(argument: Any) -> None:
    note(time.time())
    await asyncio.sleep(3600)


JOBS = {"noop": noop, "sleep": sleep, "pick_up": pick_up, "hang": hang}


class Taskiq(driver.Driver):
    async def connect(self) -> None:
        await broker.startup()

    async def put(self, job: str, argument: Any) -> None:
        await JOBS[job].kiq(argument)

    async def close(self) -> None:
        await broker.shutdown()

    def work(self) -> None:
        program = str(Path(sys.executable).with_name("taskiq"))
        most = str(driver.CONCURRENCY)
        options = ["--workers", "1", "--max-async-tasks", most, "--log-level", "WARNING"]
        os.execv(program, [program, "worker", "tests.bench.drivers.taskiq:broker", *options])


if __name__ == "__main__":
    driver.main(Taskiq())
