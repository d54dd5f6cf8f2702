"""Keep the locks of all that runs alive, and say which are lost."""

from __future__ import annotations

import asyncio
import contextlib

from redis import exceptions

from aioqless.errors import ScriptError
from aioqless.log import log
from aioqless.scripts import Scripts
from aioqless.worker.run import Run
from aioqless.worker.runner import Runner

LONGEST_PAUSE = 5.0
SHORTEST_PAUSE = 0.05
MOST_PER_CALL = 500


class Heartbeater:
    """Renews each lock when a third of it has gone. Owns its timer and the runs in doubt; moves the runs' deadlines."""

    def __init__(self, scripts: Scripts, worker: str, runner: Runner) -> None:
        self._scripts = scripts
        self._worker = worker
        self._runner = runner
        self._doubted: set[str] = set()
        self._hurry = asyncio.Event()

    def doubt(self, jid: str) -> None:
        """Somebody said that this lock is lost: see at once whether it can still be renewed."""
        if jid in self._runner.running:
            self._doubted.add(jid)
            self._hurry.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._hurry.clear()
            due = [run for run in self._held() if self._next(run) <= loop.time()]
            self._doubted.clear()
            for start in range(0, len(due), MOST_PER_CALL):
                await self._renew(due[start : start + MOST_PER_CALL])
            until = min([loop.time() + LONGEST_PAUSE, *(self._next(run) for run in self._held())])
            pause = max(until - loop.time(), SHORTEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), pause)
            if (late := loop.time() - until) > max(pause / 2, 0.5):
                running = sorted({run.job.klass for run in self._runner.running.values()})
                log.warning("worker.loop_blocked", seconds=round(late, 3), running=running)

    def _held(self) -> list[Run]:
        return [run for run in self._runner.running.values() if run.stopped_by != "lost"]

    def _next(self, run: Run) -> float:
        """When a run's lock is to be renewed."""
        return 0 if run.job.jid in self._doubted else run.deadline - run.lock * 2 / 3

    async def _renew(self, due: list[Run]) -> None:
        batch = [{"jid": run.job.jid, "fence": run.job.fence} for run in due]
        try:
            answers = await self._scripts("heartbeat_many", worker=self._worker, batch=batch)
        except (exceptions.ConnectionError, exceptions.TimeoutError) as away:
            log.warning("heartbeater.failed", jobs=len(due), error=str(away))
            return
        for run, answer in zip(due, answers, strict=True):
            if isinstance(answer, ScriptError):
                run.stop("lost")
            else:
                expires = float(answer)
                run.deadline += expires - run.job.expires
                run.job.expires = expires
