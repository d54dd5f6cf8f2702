"""The driver for rq.

Jobs run one at a time in the worker's own process; rq's default forks for each, which costs more.
"""

import time
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker

from tests.bench import driver
from tests.bench.meters import Tally, expected, note, out

tally = Tally(expected(), out())


def noop(argument: Any) -> None:
    tally.start()
    tally.end()


def pick_up(argument: float) -> None:
    note(time.time() - argument)


def hang(argument: Any) -> None:
    note(time.time())
    time.sleep(3600)


def function(job: str) -> str:
    return f"tests.bench.drivers.rq.{job}"


class Rq(driver.Driver):
    async def connect(self) -> None:
        self.queue = Queue(connection=Redis.from_url(driver.URL))

    async def put(self, job: str, argument: Any) -> None:
        self.queue.enqueue(function(job), argument, result_ttl=0)

    async def put_many(self, job: str, argument: Any, count: int) -> None:
        for start in range(0, count, 1000):
            portion = range(min(1000, count - start))
            self.queue.enqueue_many(
                [Queue.prepare_data(function(job), (argument,), result_ttl=0) for _ in portion]
            )

    def work(self) -> None:
        redis = Redis.from_url(driver.URL)
        SimpleWorker([Queue(connection=redis)], connection=redis).work(logging_level="WARNING")


if __name__ == "__main__":
    driver.main(Rq())
