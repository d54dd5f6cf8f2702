"""PutSender: sends jobs to Redis; the one route of `put`, `put_many` and workflows."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from aioqless import validation
from aioqless.client.codec import Codec
from aioqless.client.put.new_job import NewJob, PreparedJob
from aioqless.errors import QueueFull
from aioqless.redis.batcher import Batcher
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import PutFlowRow, Store

MAX_JOBS_PER_CALL = 50  # keeps Redis busy for about a millisecond
MAX_BYTES_PER_CALL = 1 << 18
MAX_NAMES_PER_CALL = 5_000  # tags and dependencies of all its jobs
PARALLEL_PUTS = 8  # batches of one queue's
PARALLEL_BATCHES = 2  # of one put_many
FIRST_PAUSE = 0.02  # seconds between two attempts; it doubles
LONGEST_PAUSE = 1.0

T = TypeVar("T")


class Backpressure:
    """Paces the attempts of a caller that waits for a full queue, or a full Redis.

    Args:
        wait: Seconds to wait at most.

    Raises:
        TypeError: `wait` is not a number.
        ValueError: `wait` is negative.
    """

    def __init__(self, wait: float) -> None:
        self._until = time.monotonic() + validation.check_number("wait", wait, least=0)
        self._pause = FIRST_PAUSE

    @property
    def left(self) -> float:
        """Seconds that are left to wait."""
        return max(0.0, self._until - time.monotonic())

    async def pause(self) -> bool:
        """Pause before the next attempt; returns False, at once, if the time is up."""
        left = self.left
        if not left:
            return False
        await asyncio.sleep(min(left, self._pause * random.uniform(0.8, 1.2)))
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return True

    async def attempt(self, send: Callable[[], Awaitable[T]]) -> T:
        """Call `send` until it succeeds.

        Raises:
            QueueFull: There was no room until the time was up.
        """
        while True:
            try:
                return await send()
            except QueueFull:
                if not await self.pause():
                    raise


class PutSender:
    """Prepares jobs and sends them.

    Single puts to one queue that are made in the same turn of the event loop share a call, and each
    caller gets its own result.

    Owns a batcher for each queue that has single puts on their way.

    Args:
        store: Where jobs are put.
        codec: Encodes the data.
        max_data: Maximum size of a job's data, in bytes.
        make_context: Returns the context of a job that is put without one.
    """

    def __init__(
        self,
        store: Store,
        codec: Codec,
        max_data: int,
        make_context: Callable[[NewJob], Mapping[str, str] | None] = lambda _: None,
    ) -> None:
        self._store = store
        self._codec = codec
        self._max_data = max_data
        self._make_context = make_context
        self._batchers: dict[str, Batcher[PreparedJob, str]] = {}

    def prepare(self, job: NewJob) -> PreparedJob:
        """Check and encode a job.

        Raises:
            InvalidData: The data isn't JSON, is too large, or isn't what the handler takes.
            TypeError: An option has the wrong type.
            ValueError: An option is out of range.
        """
        if job.options.get("context") is None and (context := self._make_context(job)):
            job = job.with_options(context=context)
        return job.prepare(self._max_data, self._codec)

    async def put(self, queue: str, job: PreparedJob, wait: float) -> str:
        """Put one job; returns its jid. If the caller is canceled, it may be put nevertheless."""
        return await Backpressure(wait).attempt(partial(self._put, queue, job))

    async def put_many(
        self, queue: str, jobs: Sequence[PreparedJob], wait: float, *, keep_existing: bool = False
    ) -> list[str | Exception]:
        """Put jobs in calls of a bounded size; returns the jid or the refusal of each.

        While Redis works on a batch the next one is sent, unless some jobs depend on others, which
        have to be there before.

        Args:
            queue: Name of the queue.
            jobs: The jobs, in the order in which they are to run.
            wait: Seconds to wait for room.
            keep_existing: Leave a job alone whose jid exists; its result is an empty text.

        Raises:
            QueueFull: Redis has no memory left.
        """
        backpressure = Backpressure(wait)
        ordered = any(job.get("depends") for job in jobs)
        slots = asyncio.Semaphore(1 if ordered else PARALLEL_BATCHES)

        async def send(batch: list[PreparedJob]) -> list[str | Exception]:
            async with slots:
                return await self._put_batch(queue, batch, backpressure, keep_existing)

        tasks = [asyncio.create_task(send(batch)) for batch in split(jobs)]
        try:
            return [answer for task in tasks for answer in await task]
        finally:
            await cancel_and_wait(*tasks)

    async def put_flow(self, jobs: Sequence[tuple[str, PreparedJob]], wait: float) -> None:
        """Put jobs, each with its queue, in one step: all of them, or none."""
        batch: list[PutFlowRow] = [{"queue": queue, **job} for queue, job in jobs]
        await Backpressure(wait).attempt(partial(self._call_put_flow, batch))

    async def _call_put_flow(self, batch: list[PutFlowRow]) -> None:
        await self._store.put_flow(batch=batch)

    async def _put(self, queue: str, job: PreparedJob) -> str:
        if (batcher := self._batchers.get(queue)) is None:
            batcher = self._batchers[queue] = Batcher(
                partial(self._send, queue),
                name="puts",
                fitting=count_fitting,
                parallel=PARALLEL_PUTS,
            )
        return await batcher.submit(job)

    async def _send(self, queue: str, batch: list[PreparedJob]) -> Sequence[str | Exception]:
        try:
            if len(batch) == 1:
                return [await self._store.put(queue=queue, **batch[0])]
            return await self._store.put_many(queue=queue, batch=batch)
        finally:
            if self._batchers[queue].is_on_last_batch:
                del self._batchers[queue]

    async def _put_batch(
        self, queue: str, batch: list[PreparedJob], backpressure: Backpressure, keep: bool
    ) -> list[str | Exception]:
        """Put a batch, and those again for which there is no room, as long as the caller waits."""
        answers = await self._call_put_many(queue, batch, keep)
        while (
            left := [n for n, answer in enumerate(answers) if isinstance(answer, QueueFull)]
        ) and await backpressure.pause():
            again = await self._call_put_many(queue, [batch[n] for n in left], keep)
            for n, answer in zip(left, again, strict=True):
                answers[n] = answer
        first = answers[0]
        if len(left) == len(batch) and isinstance(first, QueueFull) and first.code == "OOM":
            raise first
        return answers

    async def _call_put_many(
        self, queue: str, batch: list[PreparedJob], keep: bool
    ) -> list[str | Exception]:
        try:
            return await self._store.put_many(
                queue=queue, batch=batch, existing="keep" if keep else None
            )
        except QueueFull as full:  # Redis has no memory, so for none of them
            return [full] * len(batch)


def count_fitting(jobs: Sequence[PreparedJob]) -> int:
    """Return how many of the leading jobs Redis handles quickly in one call: by number, by bytes,
    and by the names in their lists."""
    size = names = 0
    for count, job in enumerate(jobs[:MAX_JOBS_PER_CALL]):
        size += len(job["data"])
        names += len(job.get("tags") or ()) + len(job.get("depends") or ())
        if count and (size > MAX_BYTES_PER_CALL or names > MAX_NAMES_PER_CALL):
            return count
    return min(len(jobs), MAX_JOBS_PER_CALL)


def split(jobs: Sequence[PreparedJob]) -> Iterator[list[PreparedJob]]:
    """Split jobs into batches that Redis handles quickly."""
    start = 0
    while start < len(jobs):
        end = start + count_fitting(jobs[start : start + MAX_JOBS_PER_CALL])
        yield list(jobs[start:end])
        start = end
