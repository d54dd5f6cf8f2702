"""Job: a job that runs, as its handler has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, ParamSpec, cast, overload

from typing_extensions import TypeVar

from aioqless import validation
from aioqless.client import extensions
from aioqless.client.job.run import JobRun, StopReason
from aioqless.client.job.state import Cursor
from aioqless.client.job.stored_job import StoredJob
from aioqless.client.job.temp_dir import TempDir
from aioqless.client.new_job import NewJob
from aioqless.client.put_options import Limit
from aioqless.hints import suggest_other_type
from aioqless.validation import Seconds

Data = TypeVar("Data", default=Any)
V = TypeVar("V")
P = ParamSpec("P")

MAX_PROGRESS_MESSAGE = 1_000  # characters


@suggest_other_type("JobRecord", "`await client.jobs.get(job.jid)`")
class Job(StoredJob, Generic[Data]):
    """A job that runs: what a handler gets, and what `queue.pop` and reservations return.

    Its data is stored when the job ends, or by `heartbeat`, if the handler changed it. What an
    operator does with a job is in its record: `await client.jobs.get(job.jid)`.

    Attributes:
        together: The jobs that its bulk handler was called with, this one among them; empty before
            the call, and for other handlers.
    """

    __slots__ = ("_run", "together")

    together: Sequence[Job]

    def __init__(self, run: JobRun) -> None:
        """Make the job of a run; workers and `queue.pop` do."""
        super().__init__(run.backend, run.fields)
        self._run = run
        self.together = ()

    @property
    def data(self) -> Data:
        """The job's data.

        Raises:
            InvalidData: It is not JSON.
        """
        return cast(Data, self._run.data)

    @data.setter
    def data(self, value: Data) -> None:
        self._run.data = value

    @property
    def waited(self) -> float | None:
        """For how many seconds it could have been running before the worker popped it.

        None if that isn't known: after an expired lock, after a pop that was sent again since its
        reply was lost, and for jobs that `queue.pop` has popped.
        """
        return self._fields.waited

    @property
    def set_name(self) -> str | None:
        """Name of the job set that it is a member of, if a worker runs it."""
        return self._fields.set_name

    @property
    def settled(self) -> bool:
        """Whether its run was completed, failed, retried or released."""
        return self._run.settled

    @property
    def stopped(self) -> StopReason | None:
        """Why the worker wants this run to end; None while it may continue.

        The lock is "lost", "timeout", "shutdown", or it is "too late" to start.
        """
        return self._run.stopped

    @property
    def parked(self) -> BaseException | None:
        """The `Parked` that ended this run for a wait, also if the handler has caught it."""
        return self._run.parked

    def progress(self, share: float, message: str = "") -> None:
        """Report progress. It is stored with the job, published as an event, and renews the lock.

        Returns at once, in coroutines, threads and processes. Of reports that come faster than ten
        per second, the latest is sent.

        Args:
            share: How much is done, from 0 to 1.
            message: What is being done; cut after 1,000 characters.

        Raises:
            ValueError: `share` is not from 0 to 1.
        """
        if validation.check_number("share", share, least=0) > 1:
            raise ValueError(f"share must be from 0 to 1 (got {share!r})")
        text = validation.to_text(message)[:MAX_PROGRESS_MESSAGE]
        self._run.backend.reporter.report(self._fields, share, text)

    def emit(self, value: object) -> None:
        """Append a value to the job's output, which `client.jobs.output(jid)` reads.

        Returns at once, in coroutines, threads and processes, and never fails: values are sent
        together, some 20 times a second. While Redis is unavailable, 1 MiB of a run is kept. What
        is dropped beyond, and what isn't JSON, is counted and logged.

        Args:
            value: Any value that JSON has.

        Raises:
            AioqlessError: No worker runs the job.
        """
        self._run.output.emit(value)

    async def flush_output(self) -> None:
        """Wait until what this run has emitted is sent; `complete`, `fail`, ... do that first."""
        await self._run.flush_output()

    def charge(self, limit: Limit, used: float) -> Coroutine[object, object, bool]:
        """Correct what the start of this run costs of a limit, such as to the tokens it has used.

        May be called again; the last amount counts. It may be more than the limit, which then
        admits less until it is over. In a handler that is a plain function, the value itself is
        returned.

        Args:
            limit: A limit of the job that has a `cost`.
            used: What the run has used, from 0.

        Returns:
            Whether the start still counts; False if the period is over.

        Raises:
            LockLost: Another run holds the job.
            ValueError: `used` is less than 0.
            WrongState: It does not run, or has no such limit with a cost.
        """
        validation.check_number("used", used, least=0)
        charge = self._charge(self._run.key_of(limit), used)
        context = self._run.context
        if context is None or context.is_on_loop():
            return charge
        return cast(Coroutine[object, object, bool], context.wait(charge))

    async def _charge(self, key: str, used: float) -> bool:
        return bool(await self._backend.store.charge(**self._run.held, key=key, used=used))

    async def heartbeat(self) -> float:
        """Renew the lock, and store the data if it has changed.

        Returns:
            When the lock expires, in seconds since 1970.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        changes = self._run.changes
        self._run.renew_lock(await self._backend.store.heartbeat(**self._run.held, **changes))
        self._run.note_stored(changes)
        return self.expires

    async def complete(
        self,
        next: str | None = None,
        *,
        delay: Seconds | None = None,
        depends: Sequence[str] | None = None,
    ) -> str:
        """Complete the job, or move it on to another queue.

        Args:
            next: Queue to move it to.
            delay: With `next`: seconds until it may run there.
            depends: With `next`: jids of jobs to wait for there.

        Returns:
            The state of the job.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        await self._run.flush_output()
        state = await self._backend.store.complete(
            **self._run.held,
            queue=self.queue,
            **self._run.changes,
            next=next,
            delay=None if delay is None else validation.check_seconds("delay", delay),
            depends=depends,
            durable="1" if self._run.is_durable else None,
        )
        self._run.settle()
        return state

    async def fail(self, message: str, *, group: str | None = None) -> None:
        """Fail the job.

        Args:
            message: What went wrong; cut after 16 KiB.
            group: Failure group, such as "mail-SMTPError"; default: `<queue>-Fail`.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        await self._run.flush_output()
        group = group or validation.fit_name(f"{self.queue}-Fail")
        text = validation.limit_message(message)
        held, changes = self._run.held, self._run.changes
        await self._backend.store.fail(**held, group=group, message=text, **changes)
        self._run.settle()

    async def retry(
        self, message: str | None = None, *, delay: Seconds = 0, group: str | None = None
    ) -> int:
        """End the run, and run the job again; without any retry left it fails.

        Data that the run changed is stored. A failed job is put back by `client.jobs.retry(jid)`.

        Args:
            message: Why, kept with the job if there is a group.
            delay: Seconds until it may run.
            group: Failure group, kept with the job.

        Returns:
            How many retries are left; negative if none was and the job has failed. As many as there
            were if it is complete instead, since another job runs with a later put (`debounce`).

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        seconds = validation.check_seconds("delay", delay)
        await self._run.flush_output()
        remaining = await self._backend.store.retry(
            **self._run.held,
            queue=self.queue,
            delay=seconds,
            group=group,
            message=None if message is None else validation.limit_message(message),
            **self._run.changes,
        )
        self._run.settle()
        return int(remaining)

    async def release(self, delay: Seconds = 0) -> str:
        """Give the job back to its place in the queue, unfinished. This uses no retry.

        Data that the run changed is stored.

        Args:
            delay: Seconds until it may run.

        Returns:
            The state of the job.

        Raises:
            LockLost: Another run holds the job.
            WrongState: It does not run.
        """
        seconds = validation.check_seconds("delay", delay)
        await self._run.flush_output()
        held, changes = self._run.held, self._run.changes
        state = await self._backend.store.release(**held, delay=seconds, **changes)
        self._run.settle()
        return state

    # Steps, cursors and waits of this run: aioqless.contrib.durable

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[V]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[object, object, V]: ...
    @overload
    def step(
        self, name: str, function: Callable[P, V], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[object, object, V]: ...
    def step(
        self, name: str, function: Callable[..., object], /, *args: object, **kwargs: object
    ) -> object:
        """Call a function and store what it returns; in a later run, return what was stored.

        The effect of the function happens at least once. Nothing is stored of what it raises, and
        after the lock was lost. In a handler that is a plain function, the value itself is
        returned.

        Args:
            name: The name by which later runs find the result; unique in a run.
            function: A coroutine or a plain function, which is called in a thread.
            *args: Its arguments.
            **kwargs: Its arguments by name.

        Returns:
            What the function returned, decoded from JSON in the type that it says it returns.

        Raises:
            ValueError: The name was used before in this run.
            InvalidData: The value can't be stored, or is not of that type.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        step: object = self._run.durable.step(name, function, args, kwargs)
        return step

    def cursor(self, name: str, kind: type[V]) -> Cursor[V]:
        """Return a cursor: `async with job.cursor("rows", int) as rows:`; in a thread `with`.

        `rows.value` is the position that an earlier run has stored, or None; call `rows.advance`
        after each item.

        Args:
            name: The name by which later runs find it; unique in a run.
            kind: The type of the position.

        Raises:
            ValueError: The name was used before in this run.
            AioqlessError: The handler runs in a process.
        """
        cursor: Cursor[V] = extensions.load("durable").Cursor(self._run.durable, name, kind)
        return cursor

    @overload
    def wait_for(
        self, name: str, kind: type[V], *, timeout: Seconds | None = None
    ) -> Coroutine[object, object, V]: ...
    @overload
    def wait_for(
        self, name: str, kind: None = None, *, timeout: Seconds | None = None
    ) -> Coroutine[object, object, Any]: ...
    def wait_for(self, name: str, kind: object = None, *, timeout: Seconds | None = None) -> object:
        """Wait for a signal, `client.jobs.signal(jid, name, value)`, and return its value.

        If it takes longer than a moment, the run ends, and another one begins when the signal is
        there: what the handler did before the wait is done again, unless it was a step. In a
        handler that is a plain function, the value itself is returned.

        Args:
            name: Name of the signal; unique in a run.
            kind: The type of its value; default: any JSON.
            timeout: How long to wait at most, in seconds or as a timedelta, from the first time on;
                default: for ever.

        Raises:
            Parked: The run ends; don't catch this.
            TimeoutError: The signal did not come in time.
            InvalidData: Its value is not of the type.
            ValueError: The name was used before in this run.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        wait: object = self._run.durable.wait_for(name, kind, timeout)
        return wait

    def sleep(self, name: str, delay: Seconds) -> Coroutine[object, object, None]:
        """Wait until a time after the first run that gets here, also if the worker is restarted.

        A long sleep ends the run, as `wait_for` does.

        Args:
            name: The name by which later runs find when it ends; unique in a run.
            delay: Seconds, or a timedelta.

        Raises:
            Parked: The run ends; don't catch this.
            ValueError: The name was used before in this run.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        sleep: Coroutine[object, object, None] = self._run.durable.sleep(name, delay)
        return sleep

    def call(
        self, name: str, job: NewJob[V], *, detach: bool = False
    ) -> Coroutine[object, object, V]:
        """Put another job, once, wait for its end as `wait_for` does, and return its result.

        The other job gets the jid of this one and a number. Its result is kept for this job, also
        without `result_ttl`. Several calls in `asyncio.gather` or a task group run at once. In a
        handler that is a plain function, the result itself is returned.

        Args:
            name: The name by which later runs find the other job; unique in a run.
            job: A new job, `handler.data(...)`.
            detach: Don't cancel it when this job is canceled.

        Returns:
            What its handler returned, in the type that it says it returns.

        Raises:
            Parked: The run ends; don't catch this.
            JobFailed: The other job failed, or was canceled (the group is "canceled").
            JobExists: Its unique key is taken.
            ValueError: The name was used before in this run, or the job has an option that a
                called job can't have.
            LockLost: Another run holds the job.
            AioqlessError: The handler runs in a process.
        """
        result: Coroutine[object, object, V] = self._run.durable.call(name, job, detach=detach)
        return result

    def raise_if_stopped(self) -> None:
        """Raise if the worker wants this run to end.

        For code in threads and processes, which can't be interrupted; a coroutine is canceled
        without asking. The job is released, unless it is no longer this run's.

        Raises:
            asyncio.CancelledError: The run is to end.
        """
        if self.stopped:
            raise asyncio.CancelledError(self.stopped)

    def scratch(self) -> TempDir:
        """Return a temporary directory: `with job.scratch() as path:` or `async with`.

        It is deleted with its content when the block is left.
        """
        return TempDir(self.jid)
