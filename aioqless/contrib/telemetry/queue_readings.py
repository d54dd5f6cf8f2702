"""Reads the numbers of jobs and the lags of all queues at intervals, for metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from redis import exceptions

from aioqless import Client
from aioqless.client import REDIS_UNAVAILABLE, read_overview
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.validation import describe, to_text

INTERVAL = 15.0  # seconds between two readings
MAX_AGE = 4 * INTERVAL  # seconds after which a reading is too old to be reported
# seconds: the bounds of a histogram's buckets
DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
BULK_SIZES = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000)  # jobs
MOST_MARKS = 20
OTHERS = "others"  # queue and klass of runs without a handler
STATES = ("waiting", "running", "stalled", "scheduled", "depends", "recurring")


class QueueReading(msgspec.Struct, frozen=True):
    """What one reading found.

    Attributes:
        read_at: When it was read, in seconds since 1970.
        jobs: The number of jobs, by queue and state.
        lags: For how many seconds the next job of each queue has been waiting.
        delays: By queue, why its jobs wait, and the lag; of those queues that are delayed.
        failed: The number of failed jobs, by group.
        archive_entries: The number of the archive's entries in Redis.
        archive_lag: For how many seconds the archive's oldest entry has been unread.
        workers: The slots, busy slots and memory in bytes of each worker.
        marks: When the latest marks were made, by their texts.
    """

    read_at: float
    jobs: dict[str, dict[str, int]]
    lags: dict[str, float]
    delays: dict[str, tuple[str, float]]
    failed: dict[str, int]
    archive_entries: int
    archive_lag: float
    workers: dict[str, tuple[int, int, int]] = {}
    marks: dict[str, float] = {}

    @property
    def is_current(self) -> bool:
        """Whether it is recent enough to be reported."""
        return time.time() - self.read_at < MAX_AGE


class LatestReading:
    """The latest reading of this process."""

    def __init__(self) -> None:
        self._reading: QueueReading | None = None

    def save(self, reading: QueueReading) -> None:
        """Replace the latest reading."""
        self._reading = reading

    def find(self) -> QueueReading | None:
        """Return the latest reading, unless there is none or it is too old to be reported."""
        return self._reading if self._reading and self._reading.is_current else None


async def read_queues(client: Client) -> QueueReading:
    """Read what Redis knows of all queues, failure groups and the archive.

    Raises:
        redis.exceptions.ConnectionError: A node is away, so that counts would lack its jobs.
    """
    overview = await read_overview(client)
    living = [worker.name for worker in overview.workers if worker.alive is not False]
    facts = await client.metrics.workers(*living)
    marks = (await client.metrics.marks())[:MOST_MARKS]
    delays = overview.coverage.delays
    return QueueReading(
        read_at=time.time(),
        jobs={
            to_text(each.name): {state: getattr(each, state) for state in STATES}
            for each in overview.queues
        },
        lags={to_text(name): lag for name, lag in overview.lags.items()},
        delays={to_text(name): (delay.reason, delay.lag) for name, delay in delays.items()},
        failed={to_text(group): count for group, count in overview.failed.items()},
        archive_entries=overview.archive.length,
        archive_lag=overview.archive.unread_since(overview.when),
        workers={
            to_text(name): (each.slots, each.busy, each.memory) for name, each in facts.items()
        },
        marks={mark.text: mark.at for mark in reversed(marks)},
    )


@asynccontextmanager
async def reading_queues(
    client: Client,
    save: Callable[[QueueReading], object],
    is_due: Callable[[], bool] = lambda: True,
) -> AsyncIterator[None]:
    """Read the queues every 15 seconds while in the block, unless others have done so."""

    async def read() -> None:
        while True:
            try:
                if is_due():
                    save(await read_queues(client))
            except (*REDIS_UNAVAILABLE, exceptions.NoPermissionError):
                pass  # the worker logs the outage
            except Exception as error:  # of what another client has stored
                log.error("metrics.failed", error=describe(error), exc_info=True)
            await asyncio.sleep(INTERVAL)

    reader = asyncio.create_task(read(), name="aioqless metrics")
    try:
        yield
    finally:
        await cancel_and_wait(reader)
