"""Run jobs: start each in a task of its own, and take it from started to stored."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import cast

from aioqless import validation
from aioqless.client.job import JobRun
from aioqless.client.job.backend import RunContext
from aioqless.client.job.decoding import JobFields
from aioqless.client.job_data import RESULT
from aioqless.errors import InvalidArgument, LockLost, NoSuchJob, WrongState
from aioqless.handlers import Handler, Handlers, MiddlewareStack
from aioqless.runtime.forks import exit_fork, guard_loop
from aioqless.runtime.log import bind, log
from aioqless.runtime.tasks import wait_for_event
from aioqless.store import current_lock
from aioqless.worker.context import WorkerContext
from aioqless.worker.failures import describe_overdue, group_of
from aioqless.worker.lock_renewer import LockRenewer
from aioqless.worker.outcome import (
    End,
    Outcome,
    RunDeclined,
    RunFailed,
    StoreReply,
    end_of,
    failed_by,
    outcome_of,
    record_error,
    record_result,
    show_end,
)
from aioqless.worker.outcome_writer import OutcomeWriter
from aioqless.worker.run_counts import OTHERS, EndedRun
from aioqless.worker.running_jobs import Bulk, LockOfRuns, Run
from aioqless.worker.shared import Processes, Shared
from aioqless.worker.thread_pool import ThreadPool
from aioqless.worker.watchdog import stack_of

KILL_MARGIN = 1.0  # seconds beyond `kill_after` for a killed process to be seen to end
# Seconds beyond `shutdown_timeout` and `kill_after` for which a stopping worker tries to store
# outcomes.
OUTCOME_TIMEOUT = 4.0
# Seconds. A third of a longer lock has not gone before the lock renewer looks at it by itself.
SHORT_LOCK = 3.0
# Refusals of an outcome with a value that can't be sent or stored: it would be refused again.
INVALID = (InvalidArgument, TypeError, ValueError)
LOST = (LockLost, NoSuchJob, WrongState)  # refusals of an outcome: the job is another run's
MOST_UNKNOWN = 1000  # unknown klasses that are logged: their names come from Redis


class Runner:
    """Sees each job through. Only runners write the table of running jobs.

    A run leaves its slot when its code has stopped, and the table when Redis has its outcome; until
    then its lock is renewed.
    """

    def __init__(
        self,
        context: WorkerContext,
        shared: Shared,
        renewer: LockRenewer,
        writer: OutcomeWriter,
        note_end: Callable[[Run], None],
    ) -> None:
        self.abandoned: list[Run] = []
        self._renewer = renewer
        self._writer = writer
        self._note_end = note_end  # called when the outcome of a run is stored
        self._settings = context.settings
        self._lifecycle = context.lifecycle
        self._shared = shared
        self._running = shared.running
        self._handlers = shared.handlers
        self._backend = context.client.internals.backend
        self._middleware = shared.middleware
        self._context = RunContext(
            asyncio.get_running_loop(),
            lambda: context.lifecycle.stopping,
            shared.threads.call,
            context.settings.park_after,
        )

    def start(self, popped: Iterable[tuple[JobFields, float]]) -> int:
        """Begin jobs, each with the seconds that its lock lasts from now.

        Returns:
            How many have a handler.
        """
        bulks: dict[str, Bulk] = {}
        return sum([self._start(fields, lock, bulks) for fields, lock in popped])

    def _start(self, job: JobFields, lock: float, bulks: dict[str, Bulk]) -> bool:
        now, handler = time.monotonic(), self._handlers.get(job.klass)
        job_run = JobRun(self._backend, job, self._context, handler)
        run = Run(
            job_run,
            now,
            lock,
            deadline=now + lock,
            renewer=self._renewer,
            handler=handler,
            timeout=(handler and handler.timeout) or self._settings.timeout,
        )
        if handler is not None and handler.is_bulk:
            former = self._running.by_jid.get(job.jid)
            if job.bulk is None or (former is not None and not former.ended):
                Bulk().add(run)  # alone: the code of its former run must not keep others waiting
            else:
                bulks.setdefault(job.bulk, Bulk()).add(run)
        if self._lifecycle.releasing:
            run.stop("shutdown")
        elif job.expiry and job.expires - lock > job.expiry:
            run.stop("too late")
        replaced = self._running.add(run)
        loop = asyncio.get_running_loop()
        run.watcher = loop.create_task(self._see_through(run, replaced), name=f"aioqless {job.jid}")
        if lock < SHORT_LOCK:
            self._renewer.watch(run)
        return run.handler is not None

    def release_all(self) -> None:
        """Stop and release all runs, and those that start from now on."""
        self._lifecycle.release()
        for run in self._own(self._running.by_jid.values()):
            run.stop("shutdown")

    async def _see_through(self, run: Run, former: Run | None) -> None:
        """Take one job from started to stored."""
        bind(**run.log_fields)
        try:
            if former is not None and former.watcher is not None:
                if not former.job.settled:  # its lock was lost and came back to this worker
                    former.stop("lost")
                await asyncio.wait([former.watcher])
            try:
                await self._attempt(run)
            except Exception as wrong:  # a defect here must not leave the job running
                log.error("job.outcome_undecided", error=validation.describe(wrong))
                run.error = wrong if run.error is None else run.error
            finally:
                if run.bulk is not None:
                    run.bulk.leave(run)
            if run.abandoned:
                return
            if run.task is None or run.task.done():  # else its code has not stopped
                self._running.free_slot(run)
            await self._settle(run)
            if run.task is not None:
                await asyncio.wait([run.task])
        finally:
            self._running.remove(run)
            self._note_end(run)

    async def _attempt(self, run: Run) -> None:
        """Let the handler run until it ends or times out.

        A run that was stopped before its handler began counts as canceled.
        """
        if run.stopped_by is not None:
            run.error = asyncio.CancelledError()
            return
        # Nothing wraps it, since a job may be met many times.
        if run.handler is None and self._settings.unknown_klass_timeout > 0:
            run.error = self._handlers.unknown(run.job.klass)
            return
        log.info("job.started")
        if run.timeout is not None:
            await self._perform_with_timeout(run)
            return
        run.task = run.watcher
        await self._perform(run)
        if run.task is not None and run.task.cancelling():
            await _absorb_cancellation(run.task)
        run.task = None

    async def _perform_with_timeout(self, run: Run) -> None:
        """Run the handler in a task of its own: a timeout is stored even if its code continues."""
        run.task = asyncio.create_task(self._perform(run), name=f"aioqless handler {run.job.jid}")
        while not run.task.done() and (left := run.time_left()) != 0:
            await asyncio.wait([run.task], timeout=left)
        if not run.task.done():
            run.stop("timeout")
            if run.stopped_by != "timeout":
                await asyncio.wait([run.task])
        if run.task.cancelled():
            run.error = asyncio.CancelledError()
        elif run.task.done() and run.error is None:
            run.error = run.task.exception()

    async def _perform(self, run: Run) -> None:
        """Call the handler within its middleware, and record how it ended."""
        pid = os.getpid()
        outer = current_lock.set(LockOfRuns(asyncio.get_running_loop(), [run]))
        try:
            result = await perform(
                run, self._handlers, self._middleware, self._shared.threads, self._shared.processes
            )
            record_result(run, result)
        except BaseException as error:  # whatever a handler raises, SystemExit too
            run.error = error
            record_error(run, error)
        finally:
            run.ended = True
            current_lock.reset(outer)
            if os.getpid() != pid:
                exit_fork()

    async def _settle(self, run: Run) -> None:
        """Store the outcome, if it is this run's to store, and report the end.

        An outcome that can't be decided, or that Redis rejects, fails the job: else it would run
        forever.
        """
        reply: StoreReply = None
        if run.job_run.has_output and run.stopped_by != "lost":
            await self._flush_output(run)
        outcome = self._decide(run)
        if isinstance(outcome, RunDeclined):
            self._log_unknown(run.job.klass, outcome)
        if outcome is not None:
            reply = await self._writer.store(run, outcome)
            if isinstance(reply, INVALID) and not isinstance(outcome, RunFailed):
                outcome = RunFailed(group_of(run, reply), validation.to_text(reply))
                reply = await self._writer.store(run, outcome)
            run.job_run.settle()
        if isinstance(reply, LOST) or (outcome is None and not run.job.settled):
            await self._writer.free_limits(run)
        if end := end_of(run, outcome, reply):
            seconds = time.monotonic() - run.started
            self._shared.counts.count(_ended_run(run, end, seconds))
            has_hooks = bool(self._middleware.hooks[end.event])
            if has_hooks or log.is_enabled(end.level, end.event):
                fields = {**end.fields, "seconds": round(seconds, 6)}
                log.write(end.level, end.event, fields)
                if has_hooks:
                    show_end(run, outcome, reply)
                    await self._middleware.call_hooks(run.job, end.event, fields)

    def _decide(self, run: Run) -> Outcome | None:
        """Return the outcome of a run: a failure if that can't be decided."""
        try:
            return outcome_of(run, self._settings)
        except BaseException as wrong:  # whatever an application's exception raises
            log.error("job.outcome_undecided", error=validation.describe(wrong))
            return failed_by(run, wrong if run.error is None else run.error)

    async def _flush_output(self, run: Run) -> None:
        """Send what the run has emitted while the job is still its own.

        A worker that releases its jobs waits a second at most: then the outcome must be stored.
        """
        flushing = asyncio.ensure_future(run.job_run.flush_output())
        try:
            while not flushing.done():
                releasing = self._lifecycle.releasing
                await asyncio.wait([flushing], timeout=1)
                if releasing:
                    break
        finally:
            flushing.cancel()

    def _log_unknown(self, klass: str, declined: RunDeclined) -> None:
        """Log an unknown klass, once: a job may be offered many times."""
        logged = self._shared.logged_klasses
        if klass not in logged and len(logged) < MOST_UNKNOWN:
            logged.add(klass)
            delay, timeout = declined.delay, declined.timeout
            log.warning("job.declined", why=declined.message, delay=delay, timeout=timeout)

    @contextlib.asynccontextmanager
    async def finishing(self) -> AsyncIterator[None]:
        """Wait `shutdown_timeout` seconds for running jobs at the end; then release them.

        Code that has not stopped `kill_after` seconds later is abandoned, and what Redis has not
        taken OUTCOME_TIMEOUT seconds after that is dropped.
        """
        guard_loop()
        try:
            yield
            until = self._lifecycle.stopped_at + self._settings.shutdown_timeout
            # A pop may have delayed the shutdown.
            await self._wait_for_runs(max(0.0, until - time.monotonic()))
        finally:
            self.release_all()
            kill_after = self._settings.kill_after
            until = time.monotonic() + kill_after + OUTCOME_TIMEOUT
            await self._wait_for_code(kill_after + KILL_MARGIN)
            self._abandon()
            await self._wait_for_runs(max(0.0, until - time.monotonic()))
            self._drop_outcomes()
            await self._wait_for_runs(None)

    def _own(self, runs: Iterable[Run]) -> list[Run]:
        """Return those of these runs that this runner has started."""
        return [run for run in runs if run.renewer is self._renewer]

    async def _wait_for_runs(self, timeout: float | None) -> None:
        runs = self._own(self._running.by_jid.values())
        if watchers := [run.watcher for run in runs if run.watcher is not None]:
            await asyncio.wait(watchers, timeout=timeout)

    async def _wait_for_code(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        while self._own(self._running.slots) and (seconds := until - time.monotonic()) > 0:
            self._running.slot_freed.clear()
            await wait_for_event(self._running.slot_freed, seconds)

    def _abandon(self) -> None:
        """Leave code behind that does not stop; its job's lock is no longer renewed.

        A thread can't be stopped, and a coroutine may suppress its cancellation.
        """
        loop = asyncio.get_running_loop()
        slots = self._own(self._running.slots)
        self.abandoned = [each for run in slots for each in (run.bulk.runs if run.bulk else [run])]
        for run in self.abandoned:
            run.abandoned = True
            self._running.remove(run)
            for task in (run.watcher, run.task, run.bulk.task if run.bulk else None):
                if task is not None:
                    task.cancel()
            log.warning(
                "job.abandoned",
                **run.log_fields,
                seconds=round(time.monotonic() - run.started, 3),
                stack=stack_of(run, loop),
            )

    def _drop_outcomes(self) -> None:
        """Cancel the calls that store outcomes; a hook that runs after one is not affected."""
        for run in self._own(self._running.by_jid.values()):
            if run.watcher is not None and not run.job.settled:
                run.watcher.cancel()


def _ended_run(run: Run, end: End, seconds: float) -> EndedRun:
    """Return what is counted of a run; klasses without a handler are counted together."""
    job = run.job
    queue, klass = (job.queue, job.klass) if run.handler else OTHERS
    bulk = len(job.together) if job.together and job.together[0] is job else 0
    outcome = end.event.removeprefix("job.")
    return EndedRun(queue, klass, outcome, seconds, job.waited, run.error, bulk)


def perform(
    run: Run,
    handlers: Handlers,
    middleware: MiddlewareStack,
    threads: ThreadPool,
    processes: Processes | None = None,
) -> Awaitable[object]:
    """Call the handler of a job within the middleware, and return what they do.

    Coroutines run on the loop, plain functions in a thread, and handlers with `executor="process"`
    in a process. It returns when the code has stopped.

    Raises:
        TimeoutError: It ran for longer than its timeout.
        UnknownKlass: There is no handler for it.
        InvalidData: The handler can't take the job's data.
        BaseException: Whatever the handler or the middleware raises.
    """

    async def call() -> object:
        try:
            handler = run.handler or handlers.find(run.job.klass)
            if f'"{RESULT}"' in run.job_run.text:
                await run.job_run.fill_results()
            call_with = partial(_call_handler, handler, middleware, threads, processes)
            if run.bulk is None:
                return await call_with([run])
            handler.bind(run.job_run)  # refuses its data alone
            return await run.bulk.outcome_of(run, call_with)
        finally:
            if run.stopped_by == "timeout":  # the cancellation ends here, as asyncio.timeout's does
                if run.task is not None:
                    run.task.uncancel()
                raise TimeoutError(describe_overdue(run))

    return middleware.wrap(run.job, call)


async def _call_handler(
    handler: Handler,
    middleware: MiddlewareStack,
    threads: ThreadPool,
    processes: Processes | None,
    runs: Sequence[Run],
) -> object:
    """Call a handler with a job, or with the jobs of a bulk; return what it returns."""
    first = runs[0]
    if processes is not None and handler.executor == "process":
        return await processes.perform(runs, handler)
    function, arguments = handler.bind(first.job_run)
    jobs = first.job if first.bulk is None else first.bulk.jobs
    if handler.takes.injected:
        arguments |= middleware.resources.values(handler.takes.injected)
    if _is_coroutine_function(function):
        result = await _call_coroutine(first, partial(function, jobs, **arguments))
    else:
        result = await threads.perform(first, partial(function, jobs, **arguments))
    while result is not None and inspect.isawaitable(
        result
    ):  # a forgotten `await`, in a lambda or a decorator
        result = await result
    return result


async def _call_coroutine(run: Run, call: Callable[[], object]) -> object:
    """Call a coroutine function.

    Raises:
        Parked: It was canceled since the tasks that it waits for wait for something else.
    """
    run.job_run.task = task = asyncio.current_task()
    try:
        return await cast("Awaitable[object]", call())
    except asyncio.CancelledError:
        if task is None or run.job_run.parked is None or run.stopped_by is not None:
            raise
        task.uncancel()  # as asyncio.timeout does
        raise run.job_run.parked from None
    finally:
        run.job_run.task = None


# Asked for each job, while the functions are few.
_is_coroutine_function = lru_cache(256)(inspect.iscoroutinefunction)


async def _absorb_cancellation(task: asyncio.Task[None]) -> None:
    """Absorb a cancellation that was meant for the handler but arrived after it ended."""
    while task.uncancel():
        pass
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
