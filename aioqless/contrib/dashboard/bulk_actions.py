"""Bulk actions: many jobs, in steps of a bounded size, with progress."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.dashboard import audit_log
from aioqless.contrib.http import Identity
from aioqless.errors import AioqlessError
from aioqless.runtime.tasks import cancel_and_wait

STEP = 250  # jobs
MAX_KEPT = 50
SHOWN_FOR = 30.0  # seconds for which an action that has ended is shown
CLOSING = 10.0  # seconds for an action to be recorded before it is canceled again

# Called with the number of jobs skipped so far and the maximum number of jobs to handle; returns
# how many it handled and how many it skipped. (0, 0): nothing is left.
Step: TypeAlias = Callable[[int, int], Awaitable[tuple[int, int]]]


@dataclass
class BulkAction:
    """Progress of one bulk action."""

    number: int
    action: str
    verb: str
    group: str
    total: int  # jobs, when it began
    done: int = 0
    skipped: int = 0
    ended: float = 0
    error: str = ""

    @property
    def progress(self) -> float:
        """The fraction that is done, from 0 to 1."""
        return min(1.0, (self.done + self.skipped) / self.total) if self.total else 1.0

    def summary(self) -> str:
        """Return the outcome for the log."""
        return (
            f"{self.done:,} of {self.total:,} jobs"
            + (f", {self.skipped:,} left" if self.skipped else "")
            + (f": {self.error}" if self.error else "")
        )


class BulkActions:
    """Owns the running bulk actions and the latest that ended; one per group at a time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = itertools.count(1)
        self._actions: dict[int, BulkAction] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def recent(self, group: str | None = None) -> list[BulkAction]:
        """Return the actions that run or ended a moment ago, of a group or of all, latest first."""
        now = time.monotonic()
        found = [
            each
            for each in self._actions.values()
            if not each.ended or now - each.ended < SHOWN_FOR
        ]
        return [each for each in reversed(found) if group is None or each.group == group]

    def start(
        self,
        user: Identity,
        fields: Mapping[str, str],
        action: str,
        verb: str,
        group: str,
        total: int,
        *,
        step: Step,
    ) -> BulkAction:
        """Start an action; raise ValueError while another one runs on the group.

        Its start and its end are recorded in the audit log, with the fields of its form.
        """
        if any(not each.ended for each in self.recent(group)):
            raise ValueError(
                f"another action is running on group {group!r}: wait until it has ended"
            )
        bulk = BulkAction(next(self._numbers), action, verb, group, total)
        self._actions[bulk.number] = bulk
        for old in list(self._actions)[:-MAX_KEPT]:
            if self._actions[old].ended:
                del self._actions[old]
        task = asyncio.create_task(self._run(user, fields, bulk, step), name=f"aioqless {action}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return bulk

    async def aclose(self) -> None:
        """Stop each running action after its current step."""
        await cancel_and_wait(*self._tasks, every=CLOSING)

    async def _run(
        self, user: Identity, fields: Mapping[str, str], bulk: BulkAction, step: Step
    ) -> None:
        begun = ""
        try:
            outcome = f"{audit_log.BEGUN}{bulk.total:,} jobs"
            begun = await audit_log.record(self._client, user, bulk.action, fields, outcome)
            while (left := bulk.total - bulk.done - bulk.skipped) > 0:
                done, skipped = await step(bulk.skipped, min(STEP, left))
                if done + skipped == 0:
                    break
                bulk.done += done
                bulk.skipped += skipped
                await asyncio.sleep(0)
        except (AioqlessError, ValueError, *REDIS_UNAVAILABLE) as error:
            bulk.error = str(error)
        except asyncio.CancelledError:  # the end is recorded before the task ends
            bulk.error = "the dashboard was stopped"
        finally:
            bulk.ended = time.monotonic()
        fields, action = {**fields, "begun": begun}, bulk.action + audit_log.END
        await audit_log.record(self._client, user, action, fields, bulk.summary())
