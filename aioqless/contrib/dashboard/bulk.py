"""What is done to many jobs: in steps of a bounded size, with progress that can be looked at."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import aioqless.contrib.dashboard.audit_log as trail
from aioqless.client import Client
from aioqless.contrib.dashboard.access import Identity
from aioqless.errors import AioqlessError
from aioqless.log import log
from aioqless.redis.connection import AWAY
from aioqless.waiting import cancel_and_wait

STEP = 250
KEPT = 50
SHOWN = 30.0  # seconds for which one that has ended is shown
CLOSING = 10.0  # seconds for an act to be recorded before it is canceled again

# Handles some more of the group: returns how many were handled, and how many had to be left. (0,
# 0): there is nothing more.
Step: TypeAlias = Callable[[int, int], Awaitable[tuple[int, int]]]


@dataclass
class Bulk:
    """One such act: how many jobs there were when it began, how many are done, and how many had to
    be left as they are."""

    number: int
    act: str
    verb: str
    group: str
    total: int
    done: int = 0
    left: int = 0
    ended: float = 0
    error: str = ""

    @property
    def share(self) -> float:
        return min(1.0, (self.done + self.left) / self.total) if self.total else 1.0


class Bulks:
    """Owns those that run and the latest that ended. One for each group at a time: two would be in
    each other's way."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = itertools.count(1)
        self._bulks: dict[int, Bulk] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def shown(self, group: str | None = None) -> list[Bulk]:
        """Those that run and that ended a moment ago, of a group or of all, the latest first."""
        now = time.monotonic()
        found = [
            each for each in self._bulks.values() if not each.ended or now - each.ended < SHOWN
        ]
        return [each for each in reversed(found) if group is None or each.group == group]

    def begin(self, who: Identity, act: str, verb: str, group: str, total: int, step: Step) -> Bulk:
        """Start one. Raises ValueError while there is one of the group."""
        if any(not each.ended for each in self.shown(group)):
            raise ValueError(f"somebody is at group {group!r} just now: wait until that is through")
        bulk = Bulk(next(self._numbers), act, verb, group, total)
        self._bulks[bulk.number] = bulk
        for old in list(self._bulks)[:-KEPT]:
            if self._bulks[old].ended:
                del self._bulks[old]
        task = asyncio.create_task(self._run(who, bulk, step), name=f"aioqless {act}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return bulk

    async def aclose(self) -> None:
        """Stop what runs after the step it is at."""
        await cancel_and_wait(*self._tasks, every=CLOSING)

    async def _run(self, who: Identity, bulk: Bulk, step: Step) -> None:
        try:
            while bulk.done + bulk.left < bulk.total:
                done, left = await step(bulk.left, min(STEP, bulk.total - bulk.done - bulk.left))
                if done + left == 0:
                    break
                bulk.done, bulk.left = bulk.done + done, bulk.left + left
                await asyncio.sleep(0)
        except (AioqlessError, ValueError, *AWAY) as error:
            bulk.error = str(error)
        except asyncio.CancelledError:
            bulk.error = "the dashboard was stopped"
            raise
        finally:
            bulk.ended = time.monotonic()
            log.info(
                "web.acted",
                who=who.name,
                act=bulk.act,
                about={"group": bulk.group},
                outcome=_told(bulk),
            )
        try:
            await trail.add(
                self._client, who, f"{bulk.act} (end)", {"group": bulk.group}, _told(bulk)
            )
        except AWAY as away:
            log.error("web.audit_failed", who=who.name, act=bulk.act, why=str(away))


def _told(bulk: Bulk) -> str:
    return (
        f"{bulk.done} of {bulk.total}"
        + (f", {bulk.left} left" if bulk.left else "")
        + (f": {bulk.error}" if bulk.error else "")
    )
