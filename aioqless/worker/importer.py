"""Take over jobs that clients of other systems push."""

from __future__ import annotations

import asyncio
import time

from aioqless.contrib.foreign_queues import Arrivals, Came, Source
from aioqless.errors import QueueFull
from aioqless.log import log
from aioqless.store import ScriptStore
from aioqless.waiting import happens
from aioqless.worker.outage import NOT_NOW, Outage

PAUSE_WHEN_FULL = 5.0


class Intake:
    """Owns when it looks next. Any number may look at the same source: each entry leaves it in one
    step with becoming a job."""

    def __init__(
        self, store: ScriptStore, source: Source, outage: Outage, poll: float = 1.0
    ) -> None:
        self._arrivals = Arrivals(store, source)
        self._source = source
        self._outage = outage
        self._poll = poll
        self.looked = False  # whether what was there at the start is taken, or can't be now
        self._checked = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """`run` returns when the call under way has its answer."""
        self._stopping.set()

    async def run(self) -> None:
        """Take what comes until told to stop. Raises AioqlessError in a Cluster."""
        while not self._stopping.is_set():
            pause = await self._look()
            await happens(self._stopping, pause)

    async def once(self) -> int:
        """Take all that is there; returns how many jobs came. Raises QueueFull, and redis-py's
        errors when Redis can't be reached."""
        await self._arrivals.check()
        taken = 0
        while came := await self._arrivals.look():
            self._tell(came)
            taken += sum(each.taken for each in came)
        return taken

    async def _look(self) -> float:
        """Take a portion; returns the seconds until the next look."""
        asked = time.monotonic()
        try:
            if not self._checked:
                await self._arrivals.check()
                self._checked = True
            came = await self._arrivals.look()
        except NOT_NOW as away:
            return self._outage.lost(away, asked)
        except QueueFull as full:
            log.warning("intake.blocked", source=str(self._source), error=str(full))
            self.looked = True
            return PAUSE_WHEN_FULL
        self._outage.permitted = True
        self._outage.found()
        self._tell(came)
        self.looked = self.looked or not came
        return 0 if came else self._poll

    def _tell(self, came: list[Came]) -> None:
        if taken := sum(each.taken for each in came):
            log.info("intake.taken", source=str(self._source), jobs=taken)
        for each in came:
            for refused in each.refused:
                log.error(
                    "intake.refused", key=refused["source"], jid=refused["jid"], why=refused["why"]
                )
