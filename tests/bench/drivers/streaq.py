"""The driver for streaq."""

import asyncio
import logging
import time
from typing import Any

from streaq import Worker

from tests.bench import driver
from tests.bench.meters import Tally, expected, note, out

tally = Tally(expected(), out())
worker: Worker = Worker(
    driver.URL, concurrency=driver.CONCURRENCY, anyio_kwargs={"use_uvloop": True}
)
without_result = worker.task(ttl=0)


@without_result
async def noop(argument: Any) -> None:
    tally.start()
    tally.end()


@without_result
async def sleep(argument: Any) -> None:
    tally.start()
    await asyncio.sleep(0.01)
    tally.end()


@without_result
async def pick_up(argument: float) -> None:
    note(time.time() - argument)


@without_result
async def hang(argument: Any) -> None:
    note(time.time())
    await asyncio.sleep(3600)


JOBS = {"noop": noop, "sleep": sleep, "pick_up": pick_up, "hang": hang}


class Streaq(driver.Driver):
    async def connect(self) -> None:
        await worker.__aenter__()

    async def put(self, job: str, argument: Any) -> None:
        await JOBS[job].enqueue(argument)

    async def put_many(self, job: str, argument: Any, count: int) -> None:
        for start in range(0, count, 1000):
            await worker.enqueue_many(
                [JOBS[job].enqueue(argument) for _ in range(min(1000, count - start))]
            )

    async def close(self) -> None:
        await worker.__aexit__(None, None, None)

    def work(self) -> None:
        logging.getLogger("streaq").setLevel(logging.WARNING)
        worker.run_sync()


if __name__ == "__main__":
    driver.main(Streaq())
