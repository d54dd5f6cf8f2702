"""Renew job locks from a thread with its own event loop and connection."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TypeAlias

from redis import exceptions

from aioqless.errors import ScriptError
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.store import HeartbeatManyRow, ScriptStore
from aioqless.worker.context import NOT_NOW, WorkerContext
from aioqless.worker.running_jobs import Run, RunningJobs
from aioqless.worker.settings import ReconnectDelays
from aioqless.worker.watchdog import LATE, LoopWatchdog

RENEWED_AFTER = 1 / 3  # of the time of a lock
LONGEST_PAUSE = 0.5
SHORTEST_PAUSE = 0.05
RETRY_DELAYS = ReconnectDelays(longest=1.0)  # locks expire: it can't wait as long as others
MOST_PER_CALL = 500
STOP_MARGIN = 0.5  # seconds that a run whose lock is lost may take to learn of its own end

SendBeat: TypeAlias = Callable[[ScriptStore], Awaitable[bool]]  # returns whether it called Redis


@dataclass(frozen=True)
class Callbacks:
    """What the lock renewer reports; each is called in its own thread."""

    lost: Callable[[Run], object]  # the lock of this run was refused
    failed: Callable[[Exception, float], object]  # Redis is unavailable; when it was asked
    answered: Callable[[], object]  # Redis is back


class LockRenewer:
    """Checks the running jobs twice a second, and renews each lock when a third of it has gone.

    It is not notified of ended runs, and of started ones only if their lock would be renewed too
    late otherwise: jobs that run for milliseconds cost it nothing.

    Owns `lock` and `deadline` of every run. It moves `expires` of a run's job, as the handler may
    by its own heartbeat: each writes what Redis just said. `run` is called on its own loop;
    `check`, `watch` and `stop` are for other threads.
    """

    def __init__(
        self,
        store: ScriptStore,
        worker: str,
        running: dict[str, Run],
        watchdog: LoopWatchdog,
        stuck_after: float,
        send_beat: SendBeat,
    ) -> None:
        self._store = store
        self._worker = worker
        self._running = running
        self._watchdog = watchdog
        self._stuck_after = stuck_after
        self._send_beat = send_beat  # after each check; a blocked loop must not keep it back
        self._stuck = False
        self._reported: deque[str] = deque()  # jids from other threads, whose locks may be lost
        self._doubtful: set[str] = set()
        self._lost: set[Run] = set()
        self._away_since: float | None = None
        self._until = 0.0
        self._woken = asyncio.Event()
        self._own: tuple[asyncio.AbstractEventLoop, asyncio.Task[None] | None] | None = None
        self._stopping = False

    def check(self, *jids: str) -> None:
        """Check at once whether these locks, which are said to be lost, can still be renewed."""
        if here := [jid for jid in jids if jid in self._running]:
            self._reported.extend(here)
            self._call(self._woken.set)

    def watch(self, run: Run) -> None:
        """Wake up in time for the lock of a run that begins."""
        if _due(run) < self._until:
            self._call(self._woken.set)

    def stop(self) -> None:
        """Let `run` return, whatever it waits for."""
        self._stopping = True
        if (own := self._own) and (task := own[1]):
            self._call(task.cancel)

    def _call(self, function: Callable[[], object]) -> None:
        if own := self._own:  # else it has not begun, or has ended; read once, for it may end now
            with contextlib.suppress(RuntimeError):
                own[0].call_soon_threadsafe(function)

    async def run(self, callbacks: Callbacks) -> None:
        """Renew locks until stopped."""
        self._own = asyncio.get_running_loop(), asyncio.current_task()
        try:
            while not self._stopping:
                self._woken.clear()
                pause = await self._renew_due(callbacks)
                now = time.monotonic()
                self._until = max(
                    now + pause,
                    min([now + LONGEST_PAUSE, *(self._next(run) for run in self._held())]),
                )
                await wait_for_event(self._woken, self._until - now)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._own = None
            await self._store.connection.aclose()

    async def _renew_due(self, callbacks: Callbacks) -> float:
        """Renew what is due; return the least number of seconds until the next time."""
        while self._reported:
            self._doubtful.add(self._reported.popleft())
        self._doubtful = {jid for jid in self._doubtful if jid in self._running}
        held = self._held()
        if self._gives_up(held):
            return LONGEST_PAUSE
        due = [run for run in held if self._next(run) <= time.monotonic()]
        asked, answered = time.monotonic(), bool(due)
        try:
            for start in range(0, len(due), MOST_PER_CALL):
                await self._renew(due[start : start + MOST_PER_CALL], callbacks)
            answered = await self._send_beat(self._store) or answered
        except NOT_NOW as error:
            callbacks.failed(error, asked)
            self._away_since = self._away_since or time.monotonic()
            return RETRY_DELAYS.after(time.monotonic() - self._away_since)
        if self._away_since is not None and answered:  # without a call there is no news of Redis
            self._away_since = None
            callbacks.answered()
        return SHORTEST_PAUSE

    def _held(self) -> list[Run]:
        """Return the runs whose locks are worth renewing; forget lost ones that have ended."""
        running = set(self._running.copy().values())  # one step for all other threads
        self._lost &= running
        return [
            run
            for run in running - self._lost
            if run.renewer is self and run.stopped_by != "lost" and not run.job.settled
        ]

    def _gives_up(self, held: list[Run]) -> bool:
        """Return whether the loop has been blocked for so long that others are to get its jobs."""
        stuck = self._watchdog.ping(held) >= self._stuck_after
        if stuck and not self._stuck:
            jids = sorted(run.job.jid for run in held)
            log.error("worker.stuck", jids=jids, **self._watchdog.culprit(held))
        self._stuck = stuck
        return stuck

    def _next(self, run: Run) -> float:
        """Return when a run's lock must be renewed."""
        return 0 if run.job.jid in self._doubtful else _due(run)

    async def _renew(self, due: list[Run], callbacks: Callbacks) -> None:
        doubtful = self._doubtful & {run.job.jid for run in due}
        batch: list[HeartbeatManyRow] = [
            {"jid": run.job.jid, "fence": run.job.fence} for run in due
        ]
        answers = await self._store.heartbeat_many(worker=self._worker, batch=batch)
        by_redis, here = await self._store.now(), time.monotonic()
        self._doubtful -= doubtful
        for run, answer in zip(due, answers, strict=True):
            if isinstance(answer, ScriptError):
                self._lost.add(run)
                callbacks.lost(run)
            elif isinstance(answer, Exception):
                raise answer
            else:
                run.job_run.renew_lock(float(answer))
                run.lock = run.job.expires - by_redis
                run.deadline = here + run.lock


def _due(run: Run) -> float:
    """Return when a run's lock is due to be renewed."""
    return run.deadline - run.lock * (1 - RENEWED_AFTER)


class RenewerThread:
    """A thread with its own event loop, in which locks of one or more workers are renewed.

    All methods are called on the workers' loop.

    Args:
        running: The running jobs of these workers.
        watchdog: Watches the workers' loop.
    """

    def __init__(self, running: RunningJobs, watchdog: LoopWatchdog) -> None:
        self._running = running
        self._watchdog = watchdog
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """Run the thread for the duration of the block."""
        self._loop, ending = asyncio.new_event_loop(), asyncio.Event()
        self._watchdog.watch()
        context = contextvars.copy_context()  # for the worker's fields in log lines
        thread = threading.Thread(
            target=context.run,
            args=(self._serve, self._loop, ending),
            name="aioqless lock renewer",
            daemon=True,
        )
        thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(ending.set)
            thread.join()  # nothing is left for it to wait for

    def _serve(self, loop: asyncio.AbstractEventLoop, ending: asyncio.Event) -> None:
        """Run in the thread until the end."""
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._check_punctuality(ending))

    async def _check_punctuality(self, ending: asyncio.Event) -> None:
        """Log a late timer: nothing blocks this loop but code that holds the interpreter lock."""
        due = time.monotonic() + LONGEST_PAUSE
        while not await wait_for_event(ending, LONGEST_PAUSE):
            now = time.monotonic()
            if (late := now - due) > LATE:
                fields = self._watchdog.culprit(self._running.by_jid.copy().values())
                log.warning("worker.heartbeat_delayed", seconds=round(late, 3), **fields)
            due = now + LONGEST_PAUSE

    def submit(self, work: Coroutine[object, object, None]) -> asyncio.Future[None]:
        """Let a coroutine run in the thread, with the caller's context variables."""
        assert self._loop is not None
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


class LostLocks:
    """Lets a worker's locks be renewed in the thread, and stops the runs whose locks are lost."""

    def __init__(self, renewer: LockRenewer, context: WorkerContext, thread: RenewerThread) -> None:
        self._renewer = renewer
        self._thread = thread
        self._outage = context.outage
        self._connection = context.store.connection
        self._refused: list[Run] = []
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Renew locks until canceled."""
        # Whatever changes a run is passed to the worker's loop.
        call = asyncio.get_running_loop().call_soon_threadsafe
        callbacks = Callbacks(
            lost=lambda run: call(self._note_lost, run),
            failed=lambda error, asked: call(self._outage.record_failure, error, asked),
            answered=lambda: call(self._outage.record_success),
        )
        ended = self._thread.submit(self._renewer.run(callbacks))
        ended.add_done_callback(lambda _: self._news.set())
        try:
            while not ended.done():
                await self._news.wait()
                self._news.clear()
                await self._stop_lost()
        finally:
            self._renewer.stop()
            await asyncio.wait([ended])
        ended.result()

    def _note_lost(self, run: Run) -> None:
        self._refused.append(run)
        self._news.set()

    async def _stop_lost(self) -> None:
        """Stop runs whose lock was refused.

        The refusal may have overtaken, on the renewer's connection, the reply to a run's own end.
        It is waited for by a PING on the shared connection, where replies keep their order.
        """
        refused, self._refused = self._refused, []
        if refused:
            with contextlib.suppress(exceptions.RedisError, TimeoutError):
                async with asyncio.timeout(STOP_MARGIN):
                    await self._connection.execute("PING")
        for run in refused:
            if not run.job.settled and not run.ended:  # an ended one is refused when it is stored
                run.stop("lost")
