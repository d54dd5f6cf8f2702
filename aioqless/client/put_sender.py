"""PutSender: sends jobs to Redis, in batches, and waits while a queue is full."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar, cast

from redis import exceptions

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.jid import Jid
from aioqless.client.job.backend import JobBackend
from aioqless.client.new_job import NewJob, R, encode_job, measure
from aioqless.client.put_options import FlowOptions
from aioqless.client.workflows import Flow, Rows, Step, check_size, lay_out
from aioqless.errors import AioqlessError, NotDurable, PutManyError, QueueFull
from aioqless.redis.batcher import Batcher
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import (
    Call,
    PutFlowRow,
    PutManyRow,
    Unlimited,
    context_with,
    current_lock,
    end_run,
)
from aioqless.validation import Seconds

MAX_JOBS_PER_CALL = 50  # keeps Redis busy for about a millisecond
MAX_BYTES_PER_CALL = 1 << 18
MAX_NAMES_PER_CALL = 5_000  # tags and dependencies of all its jobs
PARALLEL_PUTS = 8  # batches of one queue's
PARALLEL_BATCHES = 2  # of one put_many
MAX_IDLE_BATCHERS = 1_000  # names of queues may come from outside, and need not repeat
FIRST_PAUSE = 0.02  # seconds between two attempts; it doubles
LONGEST_PAUSE = 1.0

CLOSED = (
    "the client was closed at the end of its block: use it within `async with Client(...) as "
    "client:`"
)


Row = TypeVar("Row", PutManyRow, PutFlowRow)
SendBatch: TypeAlias = Callable[[list[Row]], Awaitable[list[str | Exception]]]
SendFlow: TypeAlias = Callable[..., Awaitable[list[str]]]  # takes the rows as `batch`
PutHook: TypeAlias = Callable[[NewJob], NewJob]


class PutSender:
    """Encodes jobs and sends them.

    A put is sent at once. Puts to the same queue that arrive before its reply are sent together in
    the next call, and each caller gets its own result.

    Owns the batchers of each queue that got single puts, and the puts of canceled callers.

    Args:
        backend: Has the store where jobs are put, and encodes their data.
        on_put: Called in order with each job before it is encoded; each returns the job to put.
    """

    def __init__(self, backend: JobBackend, on_put: Sequence[PutHook] = ()) -> None:
        self._backend = backend
        self._store = backend.store
        self._on_put = on_put
        self._batchers: dict[tuple[str, bool], Batcher[PutManyRow, str]] = {}
        self._of_canceled: set[asyncio.Task[None]] = set()
        self._closed = False

    def close(self) -> None:
        """Refuse further jobs."""
        self._closed = True

    def encode(self, job: NewJob) -> PutManyRow:
        """Check and encode a job, as the hooks return it.

        Raises:
            InvalidData: The data isn't JSON, is too large, or isn't what the handler takes.
            RuntimeError: The client was closed.
            TypeError: An option has the wrong type, or a hook returned something else than a job.
            ValueError: An option is out of range.
        """
        if self._closed:
            raise RuntimeError(CLOSED)
        for hook in self._on_put:
            job = hook(job)
            if not isinstance(job, NewJob):
                raise TypeError(f"{hook!r} of on_put must return the job to put (got {job!r})")
        row = encode_job(job, self._backend.max_data, self._backend.codec)
        return {"missing": "refuse", **row} if row.get("depends") else row

    async def put(self, job: NewJob[R], queue: str | None, wait: Seconds) -> Jid[R]:
        """Put one job: see `Client.put`."""
        row = self.encode(job)
        name = validation.check_name("queue", job.choose_queue(queue))
        return Jid(await self.put_row(name, row, wait), self._backend, job.result_type)

    async def put_many(
        self, jobs: Iterable[NewJob[R]], queue: str | None, wait: Seconds, spread: Seconds = 0
    ) -> list[Jid[R]]:
        """Put many jobs: see `Client.put_many`."""
        if not isinstance(jobs, Iterable):
            raise no_jobs(jobs)
        new = list(map(check_job, jobs))
        if period := validation.check_seconds("spread", spread):
            new = [_delay(job, period * number / len(new)) for number, job in enumerate(new)]
        rows = [self.encode(job) for job in new]
        if queue is not None:
            validation.check_name("queue", queue)
        numbers: dict[str, list[int]] = {}
        for number, job in enumerate(new):
            numbers.setdefault(job.choose_queue(queue), []).append(number)
        answers: list[str | Exception] = [""] * len(new)
        replies: list[str | Exception] = [""]
        for name, own in numbers.items():
            if all(isinstance(reply, REDIS_UNAVAILABLE) for reply in replies):
                replies = replies[:1] * len(own)  # the other queues would take as long
            else:
                replies = await self.put_rows(name, [rows[number] for number in own], wait)
            for number, reply in zip(own, replies, strict=True):
                answers[number] = reply
        raise_failed(rows, answers)
        return [
            Jid(str(jid), self._backend, job.result_type)
            for jid, job in zip(answers, new, strict=True)
        ]

    async def put_flow(
        self, flow: Step, queue: str | None, wait: Seconds, options: FlowOptions
    ) -> Flow:
        """Put a workflow: see `Client.put_flow`."""
        return await self.put_laid_out(*lay_out(flow, queue, options), wait)

    async def put_laid_out(
        self, placed: Rows, put: Flow, wait: Seconds, send: SendFlow | None = None
    ) -> Flow:
        """Put the jobs of a workflow, as `lay_out` returns them. `send` is another command."""
        rows: list[PutFlowRow] = [{"queue": name, **self.encode(job)} for name, job in placed]
        check_size(rows)
        existing = await self.put_flow_rows(rows, wait, send)
        if existing is None or existing in put.jids:
            return replace(put, existing=existing)
        return Flow((existing,), (existing,), existing)

    async def put_row(self, queue: str, job: PutManyRow, wait: Seconds) -> str:
        """Put one job; return its jid. If the caller is canceled, it may be put nevertheless.

        Raises:
            QueueFull: There was no room within `wait` seconds.
        """
        backpressure = Backpressure(wait)
        while True:
            try:
                return await self._send_row(queue, job)
            except QueueFull:
                if not await backpressure.pause():
                    raise

    async def put_rows(
        self, queue: str, jobs: Sequence[PutManyRow], wait: Seconds, *, keep_existing: bool = False
    ) -> list[str | Exception]:
        """Put jobs in calls of a bounded size; return the jid or the error of each.

        While Redis works on a batch the next one is sent, unless some jobs depend on others, which
        have to be there before, or have a debounce, of which the last one counts. If Redis can't be
        reached, no further batch is sent.

        Args:
            queue: Name of the queue.
            jobs: The jobs, in the order in which they are to run.
            wait: Seconds to wait for room.
            keep_existing: Leave a job alone whose jid exists; its result is an empty text.

        Raises:
            QueueFull: Redis has no memory left.
        """
        backpressure, put_many = Backpressure(wait), partial(self._put_many, queue, keep_existing)
        slots = asyncio.Semaphore(1 if is_ordered(jobs) else PARALLEL_BATCHES)
        outage: Exception | None = None

        async def send(batch: list[PutManyRow]) -> list[str | Exception]:
            nonlocal outage
            async with slots:
                if outage is None:
                    try:
                        return await put_batch(put_many, batch, backpressure)
                    except exceptions.AuthenticationError:
                        raise
                    except REDIS_UNAVAILABLE as error:
                        outage = error
                return [outage] * len(batch)

        tasks = [asyncio.create_task(send(batch)) for batch in split(jobs)]
        try:
            answers = [answer for batch in await asyncio.gather(*tasks) for answer in batch]
        finally:
            await cancel_and_wait(*tasks)
        if answers and all(isinstance(each, QueueFull) and each.code == "OOM" for each in answers):
            raise cast(QueueFull, answers[0])
        return answers

    async def put_flow_rows(
        self, jobs: Sequence[PutFlowRow], wait: Seconds, send: SendFlow | None = None
    ) -> str | None:
        """Put jobs in one step: all of them, or none.

        Returns:
            The job for which none was put, since it has the jid or the unique key of one.

        Raises:
            QueueFull: There was no room within `wait` seconds.
        """
        backpressure = Backpressure(wait)
        while True:
            try:
                jids = await (send or self._store.put_flow)(batch=jobs)
                return None if jids[0] else jids[1]
            except QueueFull:
                if not await backpressure.pause():
                    raise

    async def _send_row(self, queue: str, job: PutManyRow) -> str:
        """Send a put, alone or in a batch; that of a handler waits while its run has its lock."""
        lock = current_lock.get()
        batcher = self._batcher(queue, in_handler=lock is not None)
        if lock is None or batcher.is_idle:
            return await batcher.send(job)
        reply = batcher.submit(job)
        while not reply.done() and (left := lock.deadline() - time.monotonic()) > 0:
            await asyncio.wait([reply], timeout=left)
        if reply.done():
            try:
                return reply.result()
            except REDIS_UNAVAILABLE as error:  # for so long that it can't be repeated any more
                if isinstance(error, exceptions.AuthenticationError):
                    raise
        return await end_run(lock)

    def _batcher(self, queue: str, *, in_handler: bool) -> Batcher[PutManyRow, str]:
        """Return the batcher of a queue; handlers wait longer than others, so have their own."""
        key = queue, in_handler
        if (batcher := self._batchers.get(key)) is None:
            if len(self._batchers) >= MAX_IDLE_BATCHERS:
                busy = {name: each for name, each in self._batchers.items() if not each.is_idle}
                self._batchers = busy
            batcher = self._batchers[key] = Batcher(
                partial(self._send, queue),
                name="puts",
                fitting=count_fitting,
                parallel=PARALLEL_PUTS,
                context=context_with(Unlimited() if in_handler else None),
            )
        return batcher

    def _send(self, queue: str, batch: list[PutManyRow]) -> Awaitable[Sequence[str | Exception]]:
        if len(batch) == 1:
            return self._put_one(queue, batch[0])
        return put_once(partial(self._put_many, queue, False), batch)

    async def _put_one(self, queue: str, job: PutManyRow) -> list[str]:
        with self._store.request() as request:
            put = self._store.put(queue=queue, **job, request=request)
            try:
                return [await put]
            except asyncio.CancelledError:
                task = asyncio.create_task(_put_again(put), name="aioqless put")
                self._of_canceled.add(task)
                task.add_done_callback(self._of_canceled.discard)
                raise

    def _put_many(
        self, queue: str, keep: bool, batch: list[PutManyRow]
    ) -> Call[list[str | Exception]]:
        return self._store.put_many(queue=queue, batch=batch, existing="keep" if keep else None)


async def put_batch(
    send: SendBatch[Row], batch: list[Row], backpressure: Backpressure
) -> list[str | Exception]:
    """Put a batch; put again those for which there was no room, as long as the caller waits."""
    answers = await put_once(send, batch)
    while (
        refused := [n for n, answer in enumerate(answers) if isinstance(answer, QueueFull)]
    ) and await backpressure.pause():
        retried = await put_once(send, [batch[n] for n in refused])
        for n, answer in zip(refused, retried, strict=True):
            answers[n] = answer
    return answers


async def put_once(send: SendBatch[Row], batch: list[Row]) -> list[str | Exception]:
    """Put a batch; return the jid or the error of each."""
    try:
        return await send(batch)
    except QueueFull as full:  # Redis has no memory, so for none of them
        return [full] * len(batch)
    except NotDurable as late:
        return [each if isinstance(each, Exception) else late for each in late.result]


def is_ordered(jobs: Sequence[PutManyRow] | Sequence[PutFlowRow]) -> bool:
    """Return whether earlier batches must have been put before the one with these jobs."""
    return any(job.get("depends") or "debounce" in str(job.get("constraints")) for job in jobs)


def raise_failed(
    jobs: Sequence[PutManyRow] | Sequence[PutFlowRow], answers: Sequence[str | Exception]
) -> None:
    """Raise the errors among the answers to `put_many`, if there are any.

    Raises:
        PutManyError: There are.
    """
    failed = {n: each for n, each in enumerate(answers) if isinstance(each, Exception)}
    if not failed:
        return
    late = {n: each for n, each in failed.items() if isinstance(each, NotDurable)}
    unknown = {n: each for n, each in failed.items() if isinstance(each, REDIS_UNAVAILABLE)}
    refused = {n: each for n, each in failed.items() if n not in late and n not in unknown}
    jids = [
        job["jid"] if isinstance(answer, Exception) else answer
        for job, answer in zip(jobs, answers, strict=True)
    ]
    raise PutManyError(jids, refused, unknown, late)


async def _put_again(put: Call[str]) -> None:
    """Send the put of a canceled caller again: its first attempt may have stopped half-way.

    Since the request id is the same, it is harmless if Redis has carried it out.
    """
    with suppress(exceptions.RedisError, AioqlessError):
        await put


class Backpressure:
    """Paces the attempts of a caller that waits for a full queue, or a full Redis.

    Args:
        wait: Maximum time to wait, in seconds or as a timedelta.

    Raises:
        TypeError: `wait` is neither a number nor a timedelta.
        ValueError: `wait` is negative.
    """

    def __init__(self, wait: Seconds) -> None:
        self._until = time.monotonic() + validation.check_seconds("wait", wait)
        self._pause = FIRST_PAUSE

    @property
    def left(self) -> float:
        """Number of seconds that are left to wait."""
        return max(0.0, self._until - time.monotonic())

    async def pause(self) -> bool:
        """Pause before the next attempt; return False, at once, if the time is up."""
        left = self.left
        if not left:
            return False
        await asyncio.sleep(min(left, self._pause * random.uniform(0.8, 1.2)))
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return True


def count_fitting(jobs: Sequence[PutManyRow] | Sequence[PutFlowRow]) -> int:
    """Return how many of the leading jobs fit into one call, which Redis must handle quickly.

    Limits are the number of jobs, of bytes, and of names in their lists.
    """
    size = names = 0
    for count, job in enumerate(jobs[:MAX_JOBS_PER_CALL]):
        size += measure(job)
        names += len(job.get("tags") or ()) + len(job.get("depends") or ())
        if count and (size > MAX_BYTES_PER_CALL or names > MAX_NAMES_PER_CALL):
            return count
    return min(len(jobs), MAX_JOBS_PER_CALL)


def split(jobs: Sequence[Row]) -> Iterator[list[Row]]:
    """Split jobs into batches that Redis handles quickly."""
    start = 0
    while start < len(jobs):
        end = start + count_fitting(jobs[start : start + MAX_JOBS_PER_CALL])
        yield list(jobs[start:end])
        start = end


def _delay(job: NewJob[R], seconds: float) -> NewJob[R]:
    """Return a job with a delay, unless it has a time of its own."""
    own = job.options.get("at") or job.options.get("delay")
    return job if own else job.with_options(delay=seconds)


def check_job(job: NewJob[R]) -> NewJob[R]:
    """Return a job; raise TypeError if it is something else."""
    if not isinstance(job, NewJob):
        raise no_jobs(job)
    return job


def no_jobs(got: object) -> TypeError:
    """Return the error for something else than jobs."""
    shown = job_data.shorten(got)
    return TypeError(f"put_many takes jobs, such as `[handler.data(...)]` (got {shown})")
