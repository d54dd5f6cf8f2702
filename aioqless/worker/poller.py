"""Ask Redis for as many jobs as there are free slots."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from aioqless.connection import AWAY
from aioqless.jobs import Job
from aioqless.log import log
from aioqless.record import record_of_row
from aioqless.scripts import Scripts
from aioqless.worker.outage import Outage
from aioqless.worker.runner import Runner
from aioqless.worker.settings import Settings

MOST_PER_POP = 100
LEAST_PER_POP = 10


class Poller:
    """Owns the order of the queues and the flag that wakes it."""

    def __init__(self, scripts: Scripts, worker: str, runner: Runner, outage: Outage, settings: Settings, max_data: int) -> None:
        self.idle = asyncio.Event()  # set while the last pop brought nothing
        self.stopping = False  # whether it was told to pop no more
        self._scripts = scripts
        self._worker = worker
        self._runner = runner
        self._outage = outage
        self._settings = settings
        self._max_data = max_data
        self._queues = list(settings.queues)
        self._woken = asyncio.Event()

    def wake(self, queue: str | None = None) -> None:
        """There may be something to pop, in a queue if one is given; bursts count once."""
        if queue is None or queue in self._settings.queues:
            self._woken.set()

    def stop(self) -> None:
        """Let `run` return, after a pop that is under way."""
        self.stopping = True
        self._woken.set()
        self._runner.vacancy.set()

    async def run(self) -> None:
        """Pop and start jobs until told to stop."""
        while not self.stopping:
            if self._runner.free:
                await self._sleep(await self._poll())
            else:
                self._runner.vacancy.clear()
                await self._runner.vacancy.wait()

    async def _sleep(self, pause: float) -> None:
        if pause > 0 and not self.stopping:
            self.idle.set()
            with contextlib.suppress(TimeoutError):  # wait_for would lose a cancellation that comes just when it is woken
                async with asyncio.timeout(pause):
                    await self._woken.wait()
            self.idle.clear()

    async def _poll(self) -> float:
        """Pop once; returns the seconds to wait until the next time."""
        # A third of the slots: while one third runs, another is on its way in and the last on its way out, so nobody waits for the other.
        share = max(LEAST_PER_POP, self._settings.concurrency // 3)
        asked = min(self._runner.free, share, MOST_PER_POP)
        rows, due, now = await self._pop(asked)
        for row in rows:
            record = record_of_row(row)
            self._runner.start(Job(self._scripts, record, max_data=self._max_data), record["expires"] - float(now))
        if not rows:
            wait = self._settings.poll * random.uniform(1.0, 1.2)
            return min(wait, float(due) + 0.001) if due and float(due) > 0 else wait
        log.debug("poller.popped", jobs=len(rows), asked=asked)
        if self._settings.round_robin and record["queue"] in self._queues:  # the turn goes on behind the queue of the last job
            last = self._queues.index(record["queue"]) + 1
            self._queues = self._queues[last:] + self._queues[:last]
        return 0

    async def _pop(self, asked: int) -> Any:
        """Jobs' rows, when more become due, and the time by Redis' clock. While Redis is away it is asked again under the same identity,
        so that jobs which an earlier try locked are handed out by the next that gets through; nothing, when told to stop meanwhile.
        """
        with self._scripts.request() as request:
            while True:
                self._woken.clear()
                try:
                    # Stopping waits for this: a pop that is cut off would leave jobs locked that nobody runs.
                    answer = await self._scripts(
                        "pop_many",
                        worker=self._worker,
                        count=asked,
                        order="rotation" if self._settings.round_robin else "ordered",
                        batch=[{"queue": queue} for queue in self._queues],
                        request=request,
                    )
                except AWAY as away:
                    pause = self._outage.lost(away)
                else:
                    self._outage.found()
                    return answer
                if self.stopping:
                    return [], "", "0"
                await self._sleep(pause)
