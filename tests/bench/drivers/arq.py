"""The driver for arq, which has no bulk put."""

import asyncio
import time
from typing import Any, ClassVar

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import create_worker

from tests.bench import driver
from tests.bench.meters import Tally, expected, note, out

tally = Tally(expected(), out())


async def noop(context: Any, argument: Any) -> None:
    tally.start()
    tally.end()


async def sleep(context: Any, argument: Any) -> None:
    tally.start()
    await asyncio.sleep(0.01)
    tally.end()


async def pick_up(context: Any, argument: float) -> None:
    note(time.time() - argument)


async def hang(context: Any, argument: Any) -> None:
    note(time.time())
    await asyncio.sleep(3600)


class Settings:
    functions: ClassVar[list[Any]] = [noop, sleep, pick_up, hang]
    redis_settings = RedisSettings.from_dsn(driver.URL)
    max_jobs = driver.CONCURRENCY
    keep_result = 0


class Arq(driver.Driver):
    async def connect(self) -> None:
        self.pool = await create_pool(Settings.redis_settings)

    async def put(self, job: str, argument: Any) -> None:
        await self.pool.enqueue_job(job, argument)

    async def close(self) -> None:
        await self.pool.aclose()

    def work(self) -> None:
        async def start() -> None:
            await create_worker(Settings).main()

        driver.run(start())


if __name__ == "__main__":
    driver.main(Arq())
