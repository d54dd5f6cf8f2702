"""Renew the locks of all that runs, on a loop and a connection that nobody else can hold up."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from aioqless.errors import ScriptError
from aioqless.log import log
from aioqless.store import ScriptStore
from aioqless.waiting import happens
from aioqless.worker.loop_watchdog import LATE, Pulse
from aioqless.worker.outage import NOT_NOW
from aioqless.worker.run import Run

# of a call; a connection that is silent for a third of it is given up while there is time for
# another
TIMEOUT = 15.0
LONGEST_PAUSE = 0.5
SHORTEST_PAUSE = 0.05
LONGEST_AWAY = 1.0
MOST_PER_CALL = 500


@dataclass(frozen=True)
class Told:
    """Whom the heart tells what it learns; each is called in the heart's own thread."""

    lost: Callable[[Run], object]  # this run's lock was refused
    away: Callable[
        [Exception, float], object
    ]  # Redis can't be reached, or can't do anything now; when it was asked
    back: Callable[[], object]  # it can again


class Heart:
    """Looks at the table of runs twice a second and renews each lock when a third of it has gone.
    Nobody tells it of runs that end, and of those that begin only where the next look would come
    late for their lock: jobs that run for milliseconds cost it nothing.

    Owns its time to wake, the runs in doubt, those it knows to be lost, and `lock` and `deadline`
    of every run. It moves `expires` of a run's job, as the handler may by its own heartbeat: each
    writes what Redis just said. `beat` runs on the heart's loop; `doubt`, `heed` and `stop` are for
    other threads."""

    def __init__(
        self,
        store: ScriptStore,
        worker: str,
        running: dict[str, Run],
        pulse: Pulse,
        stuck_after: float,
    ) -> None:
        self._store = store
        self._worker = worker
        self._running = running
        self._pulse = pulse
        self._stuck_after = stuck_after
        self._stuck = False
        self._said: deque[str] = deque()  # doubts from other threads that it has yet to look at
        self._doubted: set[str] = set()
        self._lost: set[Run] = set()
        self._away_since: float | None = None
        self._until = 0.0
        self._hurry = asyncio.Event()
        self._beating: tuple[asyncio.AbstractEventLoop, asyncio.Task[None] | None] | None = None
        self._stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self.beside: Callable[[ScriptStore], Awaitable[bool]] | None = (
            None  # done at each look, while locks are kept; whether it asked Redis
        )

    def doubt(self, jids: Iterable[str]) -> None:
        """Somebody said that these locks are lost: see at once whether they can still be
        renewed."""
        self._said.extend(jids)
        self._call(self._hurry.set)

    def heed(self, run: Run) -> None:
        """A run has begun; wake up for it if its lock is short."""
        if _due(run) < self._until:
            self._call(self._hurry.set)

    def stop(self) -> None:
        """Let `beat` return, whatever it waits for."""
        self._stopping = True
        if (beating := self._beating) and (task := beating[1]):
            self._call(task.cancel)

    def _call(self, what: Callable[[], object]) -> None:
        if (
            beating := self._beating
        ):  # else it hasn't begun to look, or has ended; in another thread, so it is read once
            with contextlib.suppress(RuntimeError):  # it ends just now
                beating[0].call_soon_threadsafe(what)

    async def beat(self, told: Told) -> None:
        """Beat until told to stop."""
        self._beating = asyncio.get_running_loop(), asyncio.current_task()
        self._tell_time(time.monotonic())
        try:
            while not self._stopping:
                self._hurry.clear()
                pause = await self._look(told)
                now = time.monotonic()
                self._until = max(
                    now + pause,
                    min([now + LONGEST_PAUSE, *(self._next(run) for run in self._held())]),
                )
                await happens(self._hurry, self._until - now)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._beating = None
            if self._timer is not None:
                self._timer.cancel()
            await self._store.connection.aclose()

    def _tell_time(self, due: float) -> None:
        """Nothing blocks its loop: where a timer comes late, some code kept the interpreter to
        itself, whatever the heart waited for."""
        now = time.monotonic()
        if (late := now - due) > LATE:
            log.warning(
                "worker.heartbeat_delayed", seconds=round(late, 3), **self._pulse.at(self._held())
            )
        self._timer = asyncio.get_running_loop().call_later(
            LONGEST_PAUSE, self._tell_time, now + LONGEST_PAUSE
        )

    async def _look(self, told: Told) -> float:
        """Renew what is due; returns the seconds to wait at least until the next time."""
        while self._said:
            self._doubted.add(self._said.popleft())
        self._doubted = {jid for jid in self._doubted if jid in self._running}
        held = self._held()
        if self._given_up(held):
            return LONGEST_PAUSE
        due = [run for run in held if self._next(run) <= time.monotonic()]
        asked, answered = time.monotonic(), bool(due)
        try:
            for start in range(0, len(due), MOST_PER_CALL):
                await self._renew(due[start : start + MOST_PER_CALL], told)
            if self.beside is not None:
                answered = await self.beside(self._store) or answered
        except NOT_NOW as error:
            told.away(error, asked)
            self._away_since = self._away_since or time.monotonic()
            return min(0.1 + (time.monotonic() - self._away_since) / 2, LONGEST_AWAY)
        if (
            self._away_since is not None and answered
        ):  # without a question there is no news of Redis
            self._away_since = None
            told.back()
        return SHORTEST_PAUSE

    def _held(self) -> list[Run]:
        """The runs whose locks are worth keeping."""
        running = set(self._running.copy().values())  # one step for all other threads
        self._lost &= running
        return [
            run for run in running - self._lost if run.stopped_by != "lost" and not run.job.settled
        ]

    def _given_up(self, held: list[Run]) -> bool:
        """Whether the worker's loop has been blocked for so long that others are to have its
        jobs."""
        stuck = self._pulse.feel(held) >= self._stuck_after
        if stuck and not self._stuck:
            log.error(
                "worker.stuck", jids=sorted(run.job.jid for run in held), **self._pulse.at(held)
            )
        self._stuck = stuck
        return stuck

    def _next(self, run: Run) -> float:
        """When a run's lock is to be renewed."""
        return 0 if run.job.jid in self._doubted else _due(run)

    async def _renew(self, due: list[Run], told: Told) -> None:
        doubted = self._doubted & {run.job.jid for run in due}
        batch = [{"jid": run.job.jid, "fence": run.job.fence} for run in due]
        answers = await self._store.heartbeat_many(worker=self._worker, batch=batch)
        by_redis, here = await self._store.now(), time.monotonic()
        self._doubted -= doubted
        for run, answer in zip(due, answers, strict=True):
            if isinstance(answer, ScriptError):
                self._lost.add(run)
                told.lost(run)
            else:
                run.job.expires = float(answer)
                run.lock = run.job.expires - by_redis
                run.deadline = here + run.lock


def _due(run: Run) -> float:
    """When a third of a run's lock has gone."""
    return run.deadline - run.lock * 2 / 3
