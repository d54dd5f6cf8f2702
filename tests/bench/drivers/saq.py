"""The driver for saq, which has no bulk put."""

import asyncio
import time
from typing import Any

from saq import Queue, Worker

from tests.bench import driver
from tests.bench.meters import Tally, expected, note, out

tally = Tally(expected(), out())


async def noop(context: Any, *, argument: Any) -> None:
    tally.start()
    tally.end()


async def sleep(context: Any, *, argument: Any) -> None:
    tally.start()
    await asyncio.sleep(0.01)
    tally.end()


async def pick_up(context: Any, *, argument: float) -> None:
    note(time.time() - argument)


async def hang(context: Any, *, argument: Any) -> None:
    note(time.time())
    await asyncio.sleep(3600)


class Saq(driver.Driver):
    async def connect(self) -> None:
        self.queue = Queue.from_url(driver.URL)

    async def put(self, job: str, argument: Any) -> None:
        await self.queue.enqueue(job, argument=argument, ttl=-1)  # ttl -1: keep no result

    async def close(self) -> None:
        await self.queue.disconnect()

    def work(self) -> None:
        async def start() -> None:
            await Worker(
                Queue.from_url(driver.URL),
                [noop, sleep, pick_up, hang],
                concurrency=driver.CONCURRENCY,
            ).start()

        driver.run(start())


if __name__ == "__main__":
    driver.main(Saq())
