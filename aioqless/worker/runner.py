"""Run jobs: start each in a task of its own, and take it from started to stored."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Self

from aioqless import validation
from aioqless.client.job import Job
from aioqless.errors import InvalidArgument, LockLost, NoSuchJob, WrongState
from aioqless.handlers import Handlers, MiddlewareStack
from aioqless.log import bind, log
from aioqless.waiting import happens
from aioqless.worker.executors import Executors
from aioqless.worker.finisher import Finisher
from aioqless.worker.outcome import (
    Again,
    Complete,
    Failed,
    Outcome,
    Release,
    brief,
    group_of,
    outcome_of,
    returned,
)
from aioqless.worker.perform import perform
from aioqless.worker.run import Run
from aioqless.worker.settings import Settings
from aioqless.worker.stack_dump import stack_of

STRAGGLING = (
    1.0  # seconds on top of `kill_after`, in which a process that was killed is seen to end
)


class Runner:
    """Owns the table of running jobs, and the slots. A run leaves its slot when its code has
    stopped, the table only when Redis knows its outcome: until then its lock is kept alive. Leaving
    the block waits `grace` seconds for what runs, then stops it and hands it back. Code that hasn't
    stopped `kill_after` seconds later is left running."""

    def __init__(
        self,
        handlers: Handlers,
        surroundings: MiddlewareStack,
        finisher: Finisher,
        settings: Settings,
    ) -> None:
        self.running: dict[str, Run] = {}
        self.slots: set[Run] = set()  # those whose code hasn't stopped
        self.vacancy = asyncio.Event()  # set whenever a slot has become free
        self.begun: Callable[[Run], None] = lambda run: None  # called with each run that begins
        self.ended: Callable[[Run], None] = lambda run: (
            None
        )  # called with each that left its slot, and when it left the table
        self._handlers = handlers
        self._surroundings = surroundings
        self._finisher = finisher
        self._settings = settings
        self.left: list[Run] = []  # those whose code didn't stop when the worker did
        self._handing_back = False
        self._executors = Executors(handlers, settings)

    @property
    def free(self) -> int:
        """How many more may begin. What is to be stored is bounded, too."""
        most = self._settings.concurrency
        return min(most - len(self.slots), 2 * most - len(self.running))

    def start(self, job: Job, lock: float) -> None:
        """Begin a job whose lock lasts `lock` seconds from now."""
        now = asyncio.get_running_loop().time()
        run = Run(
            job,
            started=now,
            lock=lock,
            deadline=time.monotonic() + lock,
            handler=self._handlers.get(job.klass),
        )
        if self._handing_back:
            run.stop("shutdown")
        elif job.start_by and job.expires - lock > job.start_by:
            run.stop("too late")
        former, self.running[job.jid] = self.running.get(job.jid), run
        self.slots.add(run)
        run.watcher = asyncio.create_task(
            self._see_through(run, former), name=f"aioqless {job.jid}"
        )
        self.begun(run)

    def hand_back(self) -> None:
        """Stop all that runs, and whatever is started from now on."""
        self._handing_back = self._finisher.stopping = True
        for run in list(self.running.values()):
            run.stop("shutdown")

    async def _see_through(self, run: Run, former: Run | None) -> None:
        """Take one job from started to stored."""
        bind(**run.who)
        try:
            if (
                former is not None and former.watcher is not None
            ):  # the lock was lost and came back to this worker
                if not former.job.settled:
                    former.stop("lost")
                await asyncio.wait([former.watcher])
            await self._attempt(run)
            if run.left:
                return
            if run.task is None or run.task.done():
                self._vacate(run)
            if outcome := self._outcome(run):
                await self._store(run, outcome)
            elif run.job.settled:
                await self._end(
                    log.info,
                    "job.settled",
                    run,
                    error=validation.describe(run.error) if run.error else None,
                )
            else:
                await self._end(
                    log.warning, "job.lock_lost", run, why="it was taken away while it ran"
                )
            if run.task is not None:  # a slot is free when the code has stopped, not before
                await asyncio.wait([run.task])
        finally:
            if self.running.get(run.job.jid) is run:
                del self.running[run.job.jid]
            self._vacate(run)

    def _vacate(self, run: Run) -> None:
        self.slots.discard(run)
        self.ended(run)
        self.vacancy.set()

    async def _attempt(self, run: Run) -> None:
        """Let the handler run to its end, or to its time-out. A run that was stopped before its
        handler began counts as cancelled."""
        if run.stopped_by is not None:
            run.error = asyncio.CancelledError()
            return
        log.info("job.started")
        if run.timeout is None:
            await self._perform_here(run)
        else:
            await self._perform_apart(run)

    async def _perform_here(self, run: Run) -> None:
        """In the watcher's own task, since there is nothing to do beside; it may be cancelled for
        as long as the handler runs."""
        run.task = run.watcher
        await self._perform(run)
        run.task = None
        await _calm()

    async def _perform_apart(self, run: Run) -> None:
        """In a task of its own, so that its end needn't be awaited to store that it took too
        long."""
        run.task = asyncio.create_task(self._perform(run), name=f"aioqless handler {run.job.jid}")
        while not run.task.done() and (left := run.time_left()) != 0:
            await asyncio.wait([run.task], timeout=left)
        if not run.task.done():
            run.stop("timeout")
            if run.stopped_by != "timeout":
                await asyncio.wait([run.task])
        if run.task.cancelled():
            run.error = asyncio.CancelledError()

    async def _perform(self, run: Run) -> None:
        """Call the handler; what it comes to is the run's."""
        try:
            returned(run, await perform(run, self._handlers, self._surroundings, self._executors))
        except (
            BaseException
        ) as error:  # whatever a handler raises becomes an outcome, SystemExit too
            run.error = error
        finally:
            run.ended = True

    def _outcome(self, run: Run) -> Outcome | None:
        try:
            return outcome_of(run, self._settings.retry, self._settings.release_unknown)
        except Exception as error:  # a backoff is somebody's function too
            return Failed(group_of(run, error), brief(error))

    async def _store(self, run: Run, outcome: Outcome) -> None:
        """Store an outcome. One that Redis can't take is a failure of the job: else it would run
        again and again."""
        reply = await self._finisher.store(run, outcome)
        if isinstance(reply, InvalidArgument) and not isinstance(outcome, Failed):
            outcome = Failed(group_of(run, reply), str(reply))
            reply = await self._finisher.store(run, outcome)
        run.job.settled = True
        await self._tell(run, outcome, reply)

    async def _tell(self, run: Run, outcome: Outcome, reply: Any) -> None:
        match outcome, reply:
            case _, LockLost() | WrongState() | NoSuchJob():
                await self._end(log.warning, "job.lock_lost", run, why=str(reply))
            case _, None:
                pass  # too late; the finisher told
            case _, Exception():
                await self._end(log.error, "job.refused", run, why=str(reply))
            case Complete(), "complete":
                await self._end(log.info, "job.completed", run)
            case Complete(next), state:
                await self._end(
                    log.info, "job.advanced", run, to=next.queue if next else None, state=state
                )
            case Again(delay), remaining if remaining >= 0:
                await self._end(log.info, "job.retried", run, delay=delay, remaining=remaining)
            case Again(_, group, message), _:  # it had no retry left
                group = group or f"failed-retries-{run.job.queue}"
                await self._end(
                    log.warning, "job.failed", run, group=group, message=message, exhausted=True
                )
            case Failed(group, message), _:
                await self._end(
                    log.warning, "job.failed", run, group=group, message=message, exhausted=False
                )
            case Release(delay, why), _:
                await self._end(log.info, "job.released", run, delay=delay, why=why)

    async def _end(self, write: Callable[..., Any], end: str, run: Run, **fields: Any) -> None:
        """Log how a run ended, and tell who asked for it."""
        fields["seconds"] = round(asyncio.get_running_loop().time() - run.started, 6)
        write(end, **fields)
        await self._surroundings.tell(run.job, end, fields)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                await self._all_ended(self._settings.grace)
        finally:
            self.hand_back()
            await self._code_stopped(self._settings.kill_after + STRAGGLING)
            self._leave_behind()
            await self._all_ended(None)
            await self._executors.aclose()

    async def _code_stopped(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while self.slots and (seconds := until - loop.time()) > 0:
            self.vacancy.clear()
            await happens(self.vacancy, seconds)

    def _leave_behind(self) -> None:
        """End without code that doesn't stop: a thread can't be stopped, and a coroutine may
        suppress its cancellation. Its job's lock is no longer renewed."""
        loop = asyncio.get_running_loop()
        self.left = list(self.slots)
        for run in self.left:
            run.left = True
            self.running.pop(run.job.jid, None)
            for task in (run.watcher, run.task):
                if task is not None:
                    task.cancel()
            log.warning(
                "job.left_running",
                **run.who,
                seconds=round(loop.time() - run.started, 3),
                stack=stack_of(run, loop),
            )

    async def _all_ended(self, timeout: float | None) -> None:
        if watchers := [run.watcher for run in self.running.values() if run.watcher is not None]:
            await asyncio.wait(watchers, timeout=timeout)


async def _calm() -> None:
    """What was to cancel the handler, and came when it had ended, is not to cancel who stores its
    outcome."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        while task.uncancel():
            pass
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
