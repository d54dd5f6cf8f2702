"""Keep the locks of all that runs alive, and say which are lost."""

from __future__ import annotations

import asyncio
import contextlib

from aioqless.connection import AWAY
from aioqless.errors import ScriptError
from aioqless.log import log
from aioqless.scripts import Scripts
from aioqless.worker.outage import Outage
from aioqless.worker.run import Run
from aioqless.worker.runner import Runner

LONGEST_PAUSE = 1.0
SHORTEST_PAUSE = 0.05
MOST_PER_CALL = 500
LATE = 0.5  # how late its own timer may come before somebody is told who blocks the loop


class Heartbeater:
    """Renews each lock when a third of it has gone. Owns its timer and the runs in doubt; moves when the runs' locks expire."""

    def __init__(self, scripts: Scripts, worker: str, runner: Runner, outage: Outage) -> None:
        self._scripts = scripts
        self._worker = worker
        self._runner = runner
        self._outage = outage
        self._doubted: set[str] = set()
        self._hurry = asyncio.Event()
        self._until = 0.0
        runner.begun = self._heed

    def doubt(self, *jids: str) -> None:
        """Somebody said that these locks are lost: see at once whether they can still be renewed."""
        if here := self._runner.running.keys() & jids:
            self._doubted |= here
            self._hurry.set()

    def doubt_all(self) -> None:
        """Somebody may have said so unheard."""
        self.doubt(*self._runner.running)

    def _heed(self, run: Run) -> None:
        """A run has begun; wake up for it if its lock is short."""
        if self._next(run) < self._until:
            self._hurry.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._hurry.clear()
            pause = await self._beat()
            self._until = max(loop.time() + pause, min([loop.time() + LONGEST_PAUSE, *(self._next(run) for run in self._held())]))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._until):
                    await self._hurry.wait()
            if (late := loop.time() - self._until) > LATE:
                running = sorted({run.job.klass for run in self._runner.running.values()})
                log.warning("worker.loop_blocked", seconds=round(late, 3), running=running)

    async def _beat(self) -> float:
        """Renew what is due; returns the seconds to wait at least until the next time."""
        due = [run for run in self._held() if self._next(run) <= asyncio.get_running_loop().time()]
        try:
            for start in range(0, len(due), MOST_PER_CALL):
                await self._renew(due[start : start + MOST_PER_CALL])
        except AWAY as away:
            return self._outage.lost(away)
        if due:
            self._outage.found()
        return SHORTEST_PAUSE

    def _held(self) -> list[Run]:
        return [run for run in self._runner.running.values() if run.stopped_by != "lost" and not run.job.settled]

    def _next(self, run: Run) -> float:
        """When a run's lock is to be renewed."""
        return 0 if run.job.jid in self._doubted else run.deadline - run.lock * 2 / 3

    async def _renew(self, due: list[Run]) -> None:
        doubted = self._doubted & {run.job.jid for run in due}
        self._doubted -= doubted  # before it is sent: a doubt that arrives meanwhile is a new one
        batch = [{"jid": run.job.jid, "fence": run.job.fence} for run in due]
        try:
            answers = await self._scripts("heartbeat_many", worker=self._worker, batch=batch)
        except AWAY:
            self._doubted |= doubted
            raise
        for run, answer in zip(due, answers, strict=True):
            if isinstance(answer, ScriptError):
                if not run.job.settled:
                    run.stop("lost")
            else:
                run.job.expires = float(answer)
                run.lock = run.deadline - asyncio.get_running_loop().time()
