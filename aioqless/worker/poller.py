"""Ask Redis for as many jobs as there are free slots."""

from __future__ import annotations

import asyncio
import contextlib
import random

from redis import exceptions

from aioqless.jobs import Job
from aioqless.log import log
from aioqless.record import record_of_row
from aioqless.scripts import Scripts
from aioqless.worker.runner import Runner
from aioqless.worker.settings import Settings

LONGEST_OUTAGE_PAUSE = 5.0
MOST_PER_POP = 100


class Poller:
    """Owns the order of the queues, the flag that wakes it, and whether Redis is away."""

    def __init__(self, scripts: Scripts, worker: str, runner: Runner, settings: Settings, max_data: int) -> None:
        self.idle = asyncio.Event()  # set while the last pop brought nothing
        self._scripts = scripts
        self._worker = worker
        self._runner = runner
        self._settings = settings
        self._max_data = max_data
        self._queues = list(settings.queues)
        self._woken = asyncio.Event()
        self._stopping = False
        self._outage: float | None = None

    def wake(self, queue: str | None = None) -> None:
        """There may be something to pop, in a queue if one is given; bursts count once."""
        if queue is None or queue in self._settings.queues:
            self._woken.set()

    def stop(self) -> None:
        """Let `run` return, after a pop that is under way."""
        self._stopping = True
        self._woken.set()
        self._runner.vacancy.set()

    async def run(self) -> None:
        """Pop and start jobs until told to stop."""
        while not self._stopping:
            if not self._runner.free:
                self._runner.vacancy.clear()
                await self._runner.vacancy.wait()
                continue
            pause = await self._poll()
            if pause > 0 and not self._stopping:
                self.idle.set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), pause)
                self.idle.clear()

    async def _poll(self) -> float:
        """Pop once; returns the seconds to wait until the next time."""
        asked = min(self._runner.free, MOST_PER_POP)
        self._woken.clear()
        try:
            # Stopping waits for this: a pop that is cut off would leave jobs locked that nobody runs.
            rows, due, now = await self._scripts(
                "pop_many",
                worker=self._worker,
                count=asked,
                order="rotation" if self._settings.round_robin else "ordered",
                batch=[{"queue": queue} for queue in self._queues],
            )
        except (exceptions.ConnectionError, exceptions.TimeoutError) as away:
            return self._lost(away)
        self._found()
        for row in rows:
            record = record_of_row(row)
            self._runner.start(Job(self._scripts, record, max_data=self._max_data), record["expires"] - float(now))
        if not rows:
            wait = self._settings.poll * random.uniform(0.9, 1.1)
            return min(wait, float(due) + 0.001) if due else wait
        log.debug("poller.popped", jobs=len(rows), asked=asked)
        if self._settings.round_robin:  # the turn goes on behind the queue of the last job
            last = self._queues.index(record["queue"]) + 1
            self._queues = self._queues[last:] + self._queues[:last]
        return 0

    def _lost(self, away: Exception) -> float:
        now = asyncio.get_running_loop().time()
        if self._outage is None:
            self._outage = now
            log.error("poller.redis_lost", error=str(away))
        return min(0.1 + (now - self._outage) / 2, LONGEST_OUTAGE_PAUSE)

    def _found(self) -> None:
        if self._outage is not None:
            log.info("poller.redis_found", seconds=round(asyncio.get_running_loop().time() - self._outage, 3))
            self._outage = None
