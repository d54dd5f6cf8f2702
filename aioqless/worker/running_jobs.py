"""Run: one attempt of a job; Bulk: runs that a handler takes at once; RunningJobs: the table."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeAlias, cast

from aioqless import validation
from aioqless.client.job import Job, JobRun, StopReason
from aioqless.handlers import Handler
from aioqless.handlers.results import Fail
from aioqless.runtime.forks import exit_fork
from aioqless.runtime.log import log
from aioqless.runtime.tasks import is_on_loop
from aioqless.store import current_lock


@dataclass(eq=False, slots=True)
class Run:
    """One attempt. The runner makes it, starts its task and ends it; any part may call `stop`.

    Times are by time.monotonic, which all threads share. The lock lasted `lock` seconds when it was
    renewed last, and lasts at least until `deadline`. Only differences of Redis' clock are used:
    after a fail-over it may be another clock.
    """

    job_run: JobRun
    started: float
    lock: float
    deadline: float
    renewer: object = None  # the lock renewer of the worker whose run it is
    handler: Handler | None = None  # None: no handler here claims the klass
    timeout: float | None = None  # its maximum duration, in seconds
    task: asyncio.Task[None] | None = None  # runs the handler, while it may be canceled
    watcher: asyncio.Task[None] | None = None  # the runner's; ends when the outcome is stored
    ended: bool = False  # the handler has
    stopped_by: StopReason | None = None
    result: object = None
    kept: bytes | None = None  # the result as it is stored
    answer: bytes | None = None  # the result for the job that has called it
    data: bytes | None = None  # the job's data, where the handler changed it
    data_keys: bytes | None = None  # and what it makes of the job's keys
    error: BaseException | None = None
    abandoned: bool = False  # its code does not stop, and the worker ends without it
    timed_from: float | None = None  # its timeout counts from here, if not from `started`
    bulk: Bulk | None = None  # the runs that its handler takes with it
    job: Job = field(init=False)  # what its handler, middleware and hooks get

    def __post_init__(self) -> None:
        self.job = Job(self.job_run)

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields of every log line about it."""
        return {"jid": self.job.jid, "klass": self.job.klass, "queue": self.job.queue}

    def time_left(self) -> float | None:
        """Return the seconds until it times out; None when it has no timeout."""
        if self.timeout is None:
            return None
        since = self.started if self.timed_from is None else self.timed_from
        if since == math.inf:
            return self.timeout
        return max(0.0, since + self.timeout - time.monotonic())

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop its timeout from counting while it waits for a thread or a process."""
        together = self.bulk.runs if self.bulk else [self]
        for run in together:
            run.timed_from = math.inf
        try:
            yield
        finally:
            for run in together:
                run.timed_from = time.monotonic()

    def stop(self, reason: StopReason) -> None:
        """Record why, then cancel the handler; the first reason counts."""
        if self.stopped_by is None:
            self.stopped_by = reason
            self.job_run.stop(reason)
            if self.task is not None and not (self.bulk and self.bulk.holds(self)):
                self.task.cancel()


class LockOfRuns:
    """The lock of the runs for which a handler is called, for the calls that it makes.

    Args:
        loop: The worker's event loop.
        runs: The runs: one, or those of a bulk.
    """

    __slots__ = ("_loop", "_runs")

    def __init__(self, loop: asyncio.AbstractEventLoop, runs: Sequence[Run]) -> None:
        self._loop = loop
        self._runs = runs

    def deadline(self) -> float:
        """Return until when one of them lasts at least; -inf if all runs are to end."""
        own = [run.deadline for run in self._runs if run.stopped_by is None and not run.ended]
        return max(own, default=-math.inf)

    def lose(self) -> None:
        """Stop the runs. May be called in any thread."""
        if is_on_loop(self._loop):
            self._stop()
        else:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        for run in self._runs:
            if not run.ended:
                run.stop("lost")


CallHandler: TypeAlias = Callable[[Sequence[Run]], Awaitable[object]]


class Bulk:
    """The runs that one call of a handler performs.

    Each has a task, middleware and an outcome of its own. The handler is called when each run has
    come to it, or ended, in a task whose context variables are those of the first that came. It is
    canceled when all of its runs are stopped: one that is stopped alone is only ignored in the end.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []  # the first one has the slot
        self.jobs: list[Job] = []  # what the handler takes
        self.task: asyncio.Task[None] | None = None  # calls the handler
        self._coming: set[Run] = set()  # may still come to the handler
        self._here: list[Run] = []  # have come, and wait for it
        self._taken: list[Run] = []  # whose jobs it takes
        self._running: set[Run] = set()  # whose code has not stopped
        self._call: CallHandler | None = None
        self._context: contextvars.Context | None = None
        self._ended = asyncio.Event()
        self._outcomes: dict[Run, object] = {}
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None  # each raise adds to that of the error

    def add(self, run: Run) -> None:
        """Add a run before any of them begins."""
        run.bulk = self
        self.runs.append(run)
        self._coming.add(run)
        self._running.add(run)

    async def outcome_of(self, run: Run, call: CallHandler) -> object:
        """Wait for the handler; return or raise its outcome for a run.

        Args:
            run: A run that has come to its handler.
            call: Calls the handler with runs.

        Raises:
            BaseException: The outcome.
        """
        self._here.append(run)
        if self._context is None:
            self._call, self._context = call, contextvars.copy_context()
        self.leave(run)
        await self._ended.wait()
        if run not in self._taken:
            raise asyncio.CancelledError
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)
        outcome = self._outcomes[run]
        kind = outcome if isinstance(outcome, type) else type(outcome)
        if issubclass(kind, BaseException):  # CancelledError too, as of `gather`; or a class
            raise cast(BaseException, outcome)
        return outcome

    def leave(self, run: Run) -> None:
        """Note that a run has come to its handler, or ended before."""
        self._coming.discard(run)
        if self._coming or self.task is not None or self._ended.is_set():
            return
        self._taken = [each for each in self._here if each.stopped_by is None]
        self.jobs = [each.job for each in self._taken]
        for job in self.jobs:
            job.together = self.jobs
        if self._taken:
            self.task = asyncio.get_running_loop().create_task(
                self._perform(), name=f"aioqless bulk {run.job.jid}", context=self._context
            )
        else:
            self._ended.set()

    def holds(self, run: Run) -> bool:
        """Return whether a run that was stopped waits for the handler, which others still need."""
        if run not in self._here:
            return False
        if self.task is not None and all(each.stopped_by for each in self._taken):
            self.task.cancel()
        return True

    def end(self, run: Run) -> bool:
        """Note that the code of a run has stopped; return whether that of all has."""
        self._running.discard(run)
        return not self._running

    async def _perform(self) -> None:
        """Call the handler, and keep its outcomes."""
        pid, first = os.getpid(), self._taken[0]
        log.info("bulk.started", jobs=len(self._taken))
        assert self._call is not None
        current_lock.set(LockOfRuns(asyncio.get_running_loop(), self._taken))
        try:
            result = await self._call(self._taken)
            outcomes = _check_outcomes(result, first.job, len(self._taken))
            self._outcomes = dict(zip(self._taken, outcomes, strict=True))
        except BaseException as error:  # whatever a handler raises, SystemExit too
            self._error, self._traceback = error, error.__traceback__
        finally:
            if os.getpid() != pid:
                exit_fork()
            self._ended.set()


def _check_outcomes(result: object, job: Job, count: int) -> Sequence[object]:
    """Return the outcomes of a bulk's jobs.

    Raises:
        Fail: There is not one for each.
    """
    if result is None:
        return [None] * count
    what = f"{type(result).__name__}, not a list"
    if isinstance(result, list | tuple):
        if len(result) == count:
            return result
        what = f"{len(result)} outcomes"
    raise Fail(
        f"{job.klass} must return one outcome for each job, or None: it took {count} jobs and "
        f"returned {what}",
        group=validation.fit_name(f"{job.queue}-outcomes"),
    )


class RunningJobs:
    """The runs of one worker, or of several that share their slots. Written by runners alone.

    A run leaves `slots` when its code has stopped, and `by_jid` when Redis has its outcome.
    """

    def __init__(self, worker: str, concurrency: int) -> None:
        self._worker = worker  # its name, for the log
        self.by_jid: dict[str, Run] = {}
        self.slots: set[Run] = set()  # of a bulk its first run
        self._along: set[Run] = set()  # the other runs of bulks
        self.slot_freed = asyncio.Event()
        self.concurrency = concurrency
        self.reserved = 0  # slots for the jobs of pops under way
        self.paused = False
        self._pausing = False  # and that isn't logged yet

    @property
    def free(self) -> int:
        """How many more runs may begin. Outcomes that wait to be stored are bounded, too."""
        unstored = len(self.by_jid) - len(self._along)
        free = min(self.concurrency - len(self.slots), 2 * self.concurrency - unstored)
        return free - self.reserved

    @property
    def busy(self) -> float:
        """The share of slots that run a job."""
        return len(self.slots) / self.concurrency

    async def take(self, most: int, *, whole: bool = False) -> int:
        """Wait for a free slot; reserve as many as are free for a pop of at most `most` jobs.

        Args:
            most: Maximum number of jobs.
            whole: The same number was asked for before, and no answer came: reserve no fewer, even
                while it is paused.

        Returns:
            The number; 0: look again.
        """
        if not whole and (self.paused or self.free < 1):
            await self._wait()
        while whole and self.free < most:
            await self._wait()
        count = most if whole else 0 if self.paused else max(0, min(most, self.free))
        self.reserved += count
        return count

    async def _wait(self) -> None:
        self.slot_freed.clear()
        await self.slot_freed.wait()

    def give_back(self, count: int) -> None:
        """End what `take` began: the pop has ended, and jobs that it brought start at once."""
        self.reserved -= count
        self.slot_freed.set()
        self._log_pause()

    def leave(self) -> None:
        """Let a poller that waits return."""
        self.slot_freed.set()

    def pause(self) -> None:
        """Reserve no more slots until `resume`. It is logged when no pop is under way."""
        if not self.paused:
            self.paused = self._pausing = True
            self._log_pause()

    def resume(self) -> None:
        """Reserve slots again."""
        if self.paused:
            self.paused = self._pausing = False
            self.slot_freed.set()
            log.info("worker.resumed", worker=self._worker)

    def _log_pause(self) -> None:
        if self._pausing and not self.reserved:
            self._pausing = False
            log.info("worker.paused", worker=self._worker, running=len(self.by_jid))

    def add(self, run: Run) -> Run | None:
        """Add a run, which takes a slot; return the run of its job that it replaces, if any."""
        jid = run.job.jid
        former = self.by_jid.get(jid)
        self.by_jid[jid] = run
        takes_slot = run.bulk is None or run is run.bulk.runs[0]
        (self.slots if takes_slot else self._along).add(run)
        return former

    def free_slot(self, run: Run) -> None:
        """Free the slot of a run whose code has stopped, or of its bulk with its last run."""
        if run.bulk is None:
            self.slots.discard(run)
        elif run.bulk.end(run):
            self.slots.discard(run.bulk.runs[0])
        self.slot_freed.set()

    def remove(self, run: Run) -> None:
        """Remove a run; another run of its job that has replaced it stays."""
        jid = run.job.jid
        if self.by_jid.get(jid) is run:
            del self.by_jid[jid]
        self._along.discard(run)
        self.free_slot(run)
