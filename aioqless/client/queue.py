"""Queue: a named stage that jobs are in. Jobs are put here, popped from here, and counted here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Any

from typing_extensions import Unpack

from aioqless import validation
from aioqless.client.clearing import QUEUED, Cleared, Clearing, ClearState
from aioqless.client.job import Job
from aioqless.client.job.services import Services
from aioqless.client.put import (
    Klass,
    NewJob,
    OnFailed,
    Patience,
    PutOptions,
    Puts,
    in_batches,
    put_patiently,
)
from aioqless.client.recurring import RecurOptions, RecurringJob, recur
from aioqless.client.recurring.listing import recurring_page
from aioqless.client.workflows import Flow, Step, check_size, plan
from aioqless.errors import QueueFull


class Queue:
    """One queue of a namespace. It comes into being with its first job."""

    def __init__(self, services: Services, puts: Puts, name: str, *, worker: str) -> None:
        self.name = name
        self._services = services
        self._store = services.store
        self._puts = puts
        self._worker = worker

    async def put(
        self,
        job: str | Klass | NewJob,
        data: Any = None,
        *,
        wait: float = 0,
        **options: Unpack[PutOptions],
    ) -> str:
        """Put one job; returns its jid. `put(resize.data(path="a.png"))` is checked by type
        checkers; `put(resize, {"path": "a.png"})` and, for a handler that is elsewhere,
        `put("app.jobs.resize", {...})` only when they are called.

        A jid that exists is moved here with what it is given anew, unless `if_exists` says
        otherwise. If another job has its `unique` key, nothing is put, and that one's jid is
        returned, or AlreadyThere raised. Raises QueueFull when the queue may hold no more or Redis
        has no memory left, if that is still so after `wait` seconds."""
        queue, arguments, patience = (
            validation.check_name("queue", self.name),
            self._arguments(NewJob.of(job, data, options)),
            Patience(wait),
        )
        while True:
            try:
                return await self._puts.put(queue, arguments)
            except QueueFull:
                if not await patience.lasts():
                    raise

    async def put_many(self, jobs: Iterable[NewJob], *, wait: float = 0) -> list[str]:
        """Put many jobs, in few calls of a bounded size; returns their jids in order.

        All are checked before the first is sent. Those for which there is no room are sent again
        for `wait` seconds. Should a script refuse some nevertheless, the others are put, and an
        ExceptionGroup of the refusals is raised."""
        queue = validation.check_name("queue", self.name)
        arguments, patience = [self._arguments(job) for job in jobs], Patience(wait)
        answers = await in_batches(
            arguments, lambda batch: put_patiently(self._store, queue, batch, patience)
        )
        if refused := [answer for answer in answers if isinstance(answer, Exception)]:
            raise ExceptionGroup(
                f"{len(refused)} of {len(answers)} jobs were refused; the others were put", refused
            )
        return answers

    async def put_flow(
        self, flow: Step, *, on_failed: OnFailed | None = None, wait: float = 0
    ) -> Flow:
        """Put jobs that depend on each other in one step: all of them, or none. Those that `in_queue`
        doesn't place elsewhere come here; `on_failed` is the choice of those that have none of
        their own.

        Raises ValueError for more than 1,000 jobs or 10,000 dependencies, and what `put` raises,
        after as long a `wait`."""
        patience = Patience(wait)
        rows, put = plan(flow, validation.check_name("queue", self.name), on_failed)
        check_size(batch := [{"queue": queue, **self._arguments(job)} for queue, job in rows])
        while True:
            try:
                await self._store.put_flow(batch=batch)
                return put
            except QueueFull:
                if not await patience.lasts():
                    raise

    async def requeue(self, job: NewJob) -> str:
        """Put a job that must exist. Raises NoSuchJob."""
        jid: str = await self._store.requeue(
            queue=validation.check_name("queue", self.name), **self._arguments(job)
        )
        return jid

    async def pop(self, count: int = 1, *, worker: str | None = None) -> list[Job]:
        """Lock up to `count` ready jobs for a worker (by default this client's name); those whose
        lock ran out go first."""
        return self._jobs(
            await self._store.pop(queue=self.name, worker=worker or self._worker, count=count)
        )

    async def peek(self, count: int = 25, *, offset: int = 0) -> list[Job]:
        """What pop would hand out next; nothing is locked."""
        return self._jobs(await self._store.peek(queue=self.name, count=count, offset=offset))

    async def recur(
        self, job: str | Klass | NewJob, data: Any = None, **options: Unpack[RecurOptions]
    ) -> RecurringJob:
        """Put a job again and again: `every` so many seconds, the first after `offset`; or at the
        times of `cron` in `timezone`. Other options: jid, priority, tags, retries, backlog.

        Without `backlog`, whatever was missed while nobody was there gives one job; with it, at
        most so many are made up for (0: all). A jid that exists is changed to what is given; its
        clock starts again, its count goes on, and it stays paused if it is."""
        return await recur(
            self._services,
            validation.check_name("queue", self.name),
            job,
            data,
            options,
        )

    async def unfail(self, group: str, count: int = 25) -> int:
        """Let failed jobs of a group run again, here, the oldest first; at most 1,000 a call.
        Returns how many."""
        moved: int = await self._store.unfail(
            queue=validation.check_name("queue", self.name), group=group, count=count
        )
        return moved

    async def jobs(self, state: str, *, offset: int = 0, count: int = 25) -> list[str]:
        """The jids in a state: waiting, running, stalled, scheduled, depends or recurring; at most
        1,000 a call."""
        found: list[str] = await self._store.jobs(
            state=state, queue=self.name, offset=offset, count=count
        )
        return found

    async def recurring(self, *, offset: int = 0, count: int = 25) -> list[RecurringJob]:
        """Return recurring jobs with an interval; at most 1,000 a call.

        Those with a cron expression are listed by `client.timed_recurring`.
        """
        return await recurring_page(self._services, self.name, offset, count)

    async def counts(self) -> dict[str, Any]:
        """{name, waiting, running, stalled, scheduled, depends, recurring, paused}."""
        counts: dict[str, Any] = await self._store.queues(queue=self.name)
        return counts

    async def lag(self) -> float:
        """For how many seconds the next job could have been running by now; 0 when none waits."""
        (lag,) = await self._store.lag(queues=[self.name])
        return float(lag)

    async def length(self) -> int:
        """How many jobs wait, run or are scheduled."""
        length: int = await self._store.length(queue=self.name)
        return length

    async def stats(self, date: float | None = None) -> dict[str, Any]:
        """Return the statistics of a day.

        Args:
            date: Any time of the day, in seconds since 1970; default: now. Days are those of UTC.

        Returns:
            `failures`, of which `failed` are failed still; `retries`, the sum of `lost_locks` and `explicit_retries`;
            `wait` and `run`: {count, total, mean, std, variance, histogram, milliseconds}. `histogram` has 148 counters: 60 seconds,
            59 minutes, 23 hours, 6 days; `milliseconds` has 10 of the first second, from 0, 1, 2, 5, 10, 20, 50, 100, 200 and 500 ms on,
            of what aioqless counted.
        """
        stats: dict[str, Any] = await self._store.stats(queue=self.name, date=date)
        return stats

    async def days(self, count: int = 14) -> list[dict[str, Any]]:
        """Return the totals of the latest days, today's last.

        Args:
            count: Number of days, at most 100.

        Returns:
            {day, popped, completed, failures, retries, lost_locks, explicit_retries} of each; `day` is when it began (UTC),
            `retries` the sum of the two after it.
        """
        days: list[dict[str, Any]] = await self._store.days(queue=self.name, count=count)
        return days

    async def pause(self) -> None:
        """Let nobody pop from here; what runs goes on."""
        await self._store.pause(queues=[self.name])

    async def unpause(self) -> None:
        """Let everybody pop from here again."""
        await self._store.unpause(queues=[self.name])

    async def clear(
        self,
        states: Iterable[ClearState] = QUEUED,
        *,
        dry_run: bool = False,
        step: Callable[[int], object] = lambda _: None,
    ) -> Cleared:
        """Empty the queue: cancel its jobs that wait, are scheduled (also by a limit) or are held
        by dependencies.

        Running jobs and recurring jobs are not affected. A job stays if a job that isn't canceled
        depends on it. Jobs are canceled a few hundred per call; jobs that are put meanwhile may be
        canceled, too.

        Args:
            states: What to cancel: "waiting", "scheduled", "depends", and also "failed" for jobs that failed in this queue.
            dry_run: Cancel nothing, only count.
            step: Called after each call with the number of jobs it dealt with, to show progress.

        Returns:
            How many jobs were canceled, and which stayed for which dependent.

        Raises:
            ValueError: A state that can't be cleared.
        """
        clearing = Clearing(
            self._store, validation.check_name("queue", self.name), states, dry_run=dry_run
        )
        async for canceled, kept in clearing.steps():
            step(canceled + kept)
        return clearing.result

    def clear_in_steps(self) -> AsyncIterator[tuple[int, int]]:
        """Cancel the jobs that are not running, like `clear`, in steps of a few hundred.

        Yields:
            How many jobs a step canceled, and how many stayed for their dependents.
        """
        return Clearing(self._store, validation.check_name("queue", self.name), QUEUED).steps()

    async def forget(self) -> None:
        """Take it off the list of known queues; its jobs stay."""
        await self._store.forget(queues=[self.name])

    def _arguments(self, job: NewJob) -> dict[str, Any]:
        if job.context is None and (context := self._puts.context(job)):
            job = replace(job, context=context)
        return job.arguments(self._services.max_data, self._services.codec)

    def _jobs(self, records: list[dict[str, Any]]) -> list[Job]:
        return [Job(self._services, record) for record in records]

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"
