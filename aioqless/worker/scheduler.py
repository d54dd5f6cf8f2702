"""Declare the recurring jobs of a worker's handlers, and make the instances of those with a cron
expression when their time has come."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aioqless.client.recurring.cron import Cron
from aioqless.errors import QueueFull
from aioqless.log import log
from aioqless.store import Store
from aioqless.waiting import happens
from aioqless.worker.outage import NOT_NOW, Outage
from aioqless.worker.schedule_sync import Declarations

LONGEST_PAUSE = 15.0  # Redis' clock may have been set, its contents or a notification lost
SHORTEST_PAUSE = 0.001
PAUSE_WHEN_FULL = 5.0
MOST_PER_CALL = 100


class Scheduler:
    """Owns its timer. Every worker of a namespace has one: all reckon the same ticks, and the
    script lets one of them be first."""

    def __init__(self, store: Store, declarations: Declarations, outage: Outage) -> None:
        self.reconciled = False  # whether what the code declares is in Redis
        self._generation: str | None = None  # of Redis' contents when it was declared
        self.looked = False  # whether what was due at the start is made, or can't be now
        self._store = store
        self._declarations = declarations
        self._outage = outage
        self._woken = asyncio.Event()
        self._told: set[tuple[str, str]] = set()

    def wake(self) -> None:
        """A tick may have come earlier than was said."""
        self._woken.set()

    async def run(self) -> None:
        """Declare what the code has, then tick until cancelled."""
        while True:
            self._woken.clear()
            pause = await self._tried()
            await happens(self._woken, pause)

    async def _tried(self) -> float:
        """The seconds until the next attempt, which grow while Redis is away."""
        asked = time.monotonic()
        try:
            if not self.reconciled:
                self._generation = await self._declarations.reconcile(self._store)
                self.reconciled = True
            pause = await self._tick()
        except NOT_NOW as away:
            return self._outage.lost(away, asked)
        except QueueFull as full:
            log.warning("recurring.blocked", error=str(full))
            self.looked = True
            return PAUSE_WHEN_FULL
        self._outage.found()
        self.looked = True
        return pause

    async def _tick(self) -> float:
        """Make what is due; returns the seconds until more will be."""
        rows: list[dict[str, Any]] = []
        unreadable = 0
        while True:
            answer = await self._store.tick(
                offset=unreadable, batch=rows, generation=self._generation
            )
            for row, jid in zip(rows, answer["made"], strict=True):
                if jid:
                    log.info(
                        "recurring.triggered",
                        jid=jid,
                        recurring=row["jid"],
                        late=round(answer["now"] - row["at"], 3),
                    )
            if answer.get("lost") and self.reconciled:
                log.warning(
                    "recurring.lost",
                    why="Redis was emptied, or restored from an older state: declaring again",
                )
                self.reconciled = False
            if not answer["due"]:
                break
            rows = []
            for due in answer["due"]:
                try:
                    rows += reckoned(due, answer["now"])
                except (
                    ValueError
                ) as wrong:  # for this worker at least: another may know the time zone
                    unreadable += 1
                    self._tell(due["jid"], str(wrong))
            rows = rows[:MOST_PER_CALL]
        if not self.reconciled:
            return SHORTEST_PAUSE
        return (
            LONGEST_PAUSE
            if answer["next"] is None
            else min(max(answer["next"] - answer["now"], SHORTEST_PAUSE), LONGEST_PAUSE)
        )

    def _tell(self, jid: str, why: str) -> None:
        if (jid, why) not in self._told:
            self._told.add((jid, why))
            log.error("recurring.refused", recurring=jid, why=why)


def reckoned(due: dict[str, Any], now: float) -> list[dict[str, Any]]:
    """What the script is to make of a template that is due: instances in order, each with the tick
    that it follows and the next.

    What was missed counts once, as of the latest time; with a backlog, so many times, and with one
    of 0 each time. Raises ValueError."""
    cron, first, backlog = Cron(due["cron"], due["timezone"]), due["tick"], due["backlog"]
    ticks = (
        cron.all(first, now, MOST_PER_CALL)
        if backlog == 0
        else cron.latest(first, now, backlog or 1)
    )
    following = [*ticks[1:], cron.next(ticks[-1] if backlog == 0 else now)]
    return [
        {"jid": due["jid"], "tick": tick, "at": at, "next": next_}
        for tick, at, next_ in zip([first, *ticks[1:]], ticks, following, strict=True)
    ]
