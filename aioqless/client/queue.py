"""Queue: puts, pops, lists and counts jobs, and clears, pauses or forgets the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec
from typing_extensions import Unpack

from aioqless import validation
from aioqless.client.jid import Jid
from aioqless.client.job import Job, JobRecord, JobRun
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import decode_record
from aioqless.client.new_job import Klass, NewJob, R
from aioqless.client.put_options import FlowOptions, PutOptions, RecurOptions
from aioqless.client.put_sender import PutSender
from aioqless.client.queue_clearing import QUEUED, ClearResult, ClearState, clear_queue
from aioqless.client.queue_statistics import DayStats, DayTotals, QueueCounts, Tenant
from aioqless.client.recurring import RecurringJob, recur
from aioqless.client.workflows import Flow, Step
from aioqless.hints import suggest_put
from aioqless.store import PutManyRow
from aioqless.validation import Seconds


@suggest_put("`await queue.put(handler.data(name=...), delay=60)`")
class Queue:
    """One queue of a namespace. It exists from its first job on.

    Attributes:
        name: Name of the queue.
    """

    def __init__(self, backend: JobBackend, sender: PutSender, name: str, worker: str) -> None:
        """Make one; `client.queue` does.

        Args:
            backend: The collaborators of its jobs.
            sender: Puts jobs.
            name: Name of the queue.
            worker: Name of the worker that holds what is popped.
        """
        self.name = name
        self._backend = backend
        self._store = backend.store
        self._sender = sender
        self._worker = worker

    async def put(
        self,
        job: str | Klass[R] | NewJob[R],
        data: object = None,
        *,
        wait: Seconds = 0,
        **options: Unpack[PutOptions],
    ) -> Jid[R]:
        """Put (enqueue) one job into this queue: see `Client.put`."""
        return await self._sender.put(NewJob.of(job, data, options), self.name, wait)

    async def put_many(
        self, jobs: Iterable[NewJob[R]], *, wait: Seconds = 0, spread: Seconds = 0
    ) -> list[Jid[R]]:
        """Put many jobs into this queue: see `Client.put_many`."""
        return await self._sender.put_many(jobs, self.name, wait, spread)

    async def put_encoded(
        self, jobs: Sequence[PutManyRow], *, wait: Seconds = 0, keep_existing: bool = False
    ) -> list[str | Exception]:
        """Put jobs that `encode_job` made before, perhaps in another process.

        Args:
            jobs: The jobs, in the order in which they are to run.
            wait: Seconds to wait while the queue, or Redis, is full.
            keep_existing: Leave a job alone whose jid exists; its result is an empty text.

        Returns:
            For each its jid, or the error: a refusal, NotDurable, or one of the connection.

        Raises:
            QueueFull: Redis has no memory left.
        """
        return await self._sender.put_rows(
            self._check_name(), jobs, wait, keep_existing=keep_existing
        )

    async def put_flow(
        self,
        flow: Step,
        *,
        wait: Seconds = 0,
        **options: Unpack[FlowOptions],
    ) -> Flow:
        """Put a workflow, its jobs without `in_queue` into this queue: see `Client.put_flow`."""
        return await self._sender.put_flow(flow, self.name, wait, options)

    async def pop(self, count: int = 1, *, worker: str | None = None) -> list[Job]:
        """Lock jobs that are ready, those with an expired lock first.

        Args:
            count: Maximum number of jobs.
            worker: Name of the worker that holds them; default: the client's name.

        Returns:
            The jobs; none if the queue has none, is paused, or is at its limit.
        """
        records = await self._store.pop(queue=self.name, worker=worker or self._worker, count=count)
        return [Job(JobRun(self._backend, decode_record(record))) for record in records]

    async def peek(self, *, offset: int = 0, count: int = 25) -> list[JobRecord]:
        """Return the records of the jobs that would be popped next, without locking them.

        Args:
            offset: Number of jobs to skip.
            count: Maximum number of jobs.
        """
        records = await self._store.peek(queue=self.name, count=count, offset=offset)
        return [JobRecord(self._backend, decode_record(record)) for record in records]

    async def recur(
        self, job: str | Klass | NewJob, data: object = None, **options: Unpack[RecurOptions]
    ) -> RecurringJob:
        """Make a recurring job of this queue, or change it: see `Client.recur`."""
        return await recur(self._backend, job, data, self.name, options)

    async def unfail(self, group: str, count: int = 25) -> int:
        """Put failed jobs of a group into this queue, the oldest first.

        This is qless' own command; `client.jobs.retry_group` puts each into the queue it failed in.

        Args:
            group: Failure group.
            count: Maximum number of jobs, at most 1,000.

        Returns:
            How many were put.
        """
        return await self._store.unfail(queue=self._check_name(), group=group, count=count)

    async def jids(self, state: str, *, offset: int = 0, count: int = 25) -> list[str]:
        """Return the jids of jobs in a state.

        Args:
            state: "waiting", "running", "stalled", "scheduled", "depends" or "recurring".
            offset: Number of jobs to skip.
            count: Maximum number of jobs, at most 1,000.
        """
        return await self._store.jobs(state=state, queue=self.name, offset=offset, count=count)

    async def counts(self) -> QueueCounts:
        """Return the number of jobs in each state."""
        return msgspec.convert(await self._store.queues(queue=self.name), QueueCounts)

    async def lag(self) -> float:
        """Return for how many seconds the next job could have been running; 0 if none waits."""
        (lag,) = await self._store.lag(queues=[self.name])
        return float(lag)

    async def tenants(self, *, offset: int = 0, count: int = 100) -> list[Tenant]:
        """Return the tenants of the queue's fair turns that have jobs, by whose turn is next.

        Args:
            offset: Number of tenants to skip.
            count: Maximum number of tenants, at most 1,000; a page may have fewer, since tenants
                without jobs are left out.
        """
        found = await self._store.tenants(queue=self.name, offset=offset, count=count)
        return msgspec.convert(found, list[Tenant])

    async def length(self) -> int:
        """Return the number of jobs that wait, run or are scheduled."""
        return await self._store.length(queue=self.name)

    async def stats(self, date: float | datetime | None = None) -> DayStats:
        """Return the statistics of a day.

        Args:
            date: Any time of the day (UTC), a datetime or in seconds since 1970; default: now.
        """
        if isinstance(date, datetime):
            date = validation.check_time("date", date)
        stats = await self._store.stats(queue=self.name, date=date)
        return msgspec.convert(stats, DayStats, strict=False)

    async def days(self, count: int = 14) -> list[DayTotals]:
        """Return the totals of the latest days, today's last.

        Args:
            count: Number of days, at most 100.
        """
        days = await self._store.days(queue=self.name, count=count)
        return msgspec.convert(days, list[DayTotals])

    async def pause(self) -> None:
        """Keep workers from popping until `resume`. Running jobs are not affected."""
        await self._store.pause(queues=[self.name])

    async def resume(self) -> None:
        """Let workers pop again."""
        await self._store.unpause(queues=[self.name])

    async def clear(
        self,
        states: Iterable[ClearState] = QUEUED,
        *,
        dry_run: bool = False,
        step: Callable[[int], object] = lambda _: None,
    ) -> ClearResult:
        """Cancel the jobs of the queue that wait, are scheduled or are held by dependencies.

        Running jobs and recurring jobs are not affected. A job stays if a job that isn't canceled
        depends on it. Jobs are canceled a few hundred per call; jobs that are put meanwhile may be
        canceled, too.

        Args:
            states: What to cancel: "waiting", "scheduled", "depends", and also "failed" for jobs
                that failed in this queue.
            dry_run: Cancel nothing, only count.
            step: Called after each call with the number of jobs it dealt with, to show progress.

        Returns:
            How many jobs were canceled, and which stayed for which dependent.

        Raises:
            ValueError: A state that can't be cleared.
        """
        result = ClearResult()
        async for each in clear_queue(self._store, self._check_name(), states, dry_run=dry_run):
            result.add(each)
            step(each.canceled + each.kept)
        return result

    async def forget(self) -> None:
        """Remove the queue from the list of known queues; its jobs stay."""
        await self._store.forget(queues=[self.name])

    def _check_name(self) -> str:
        return validation.check_name("queue", self.name)

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"
