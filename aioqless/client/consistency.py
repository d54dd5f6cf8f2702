"""The consistency check of a namespace, in calls of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self, cast

import msgspec

from aioqless.client.job_data import Json
from aioqless.client.recurring.cron import right_tick
from aioqless.store import Store, TickRow

PAGE = 1000

# Kinds of findings that other qless clients leave where they pop, complete, fail or cancel a job of
# ours: they don't know what it has beyond theirs. No job waits for these entries for long.
LEFT_BY_OTHERS = {
    "bulk-not-gathering",
    "holding-not-running",
    "member-elsewhere",
    "priority-too-great",
    "steps-without-job",
    "turn-not-waiting",
    "unique-without-job",
    "without-turn",
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One inconsistency.

    Attributes:
        problem: Kind of problem, as `aioqless lua check` lists them.
        fixed: Whether it was repaired.
        about: What it concerns, such as `jid`, `queue` or `key`.
    """

    problem: str
    fixed: bool
    about: dict[str, Json]

    @property
    def is_left_by_others(self) -> bool:
        """Whether ordinary work of other qless clients leaves it."""
        return self.problem in LEFT_BY_OTHERS

    @classmethod
    def from_record(cls, record: Mapping[str, Json]) -> Self:
        """Build a finding from the reply of the command `check`."""
        about = {name: each for name, each in record.items() if name not in ("problem", "fixed")}
        return cls(problem=str(record["problem"]), fixed=bool(record["fixed"]), about=about)


async def check_consistency(
    store: Store, *, resolve: bool, step: Callable[[int], object]
) -> list[Finding]:
    """Check all keys of a namespace.

    Args:
        store: The commands of the namespace.
        resolve: Repair what is found; no job is lost.
        step: Called after each call with the number of things it looked at.
    """
    found: list[Finding] = []
    cursor = "0"
    while True:
        reply = await store.check(resolve="resolve" if resolve else None, cursor=cursor)
        found += map(Finding.from_record, reply["found"])
        cursor = reply["cursor"]
        step(reply["examined"])
        if cursor == "0":
            return _add_up(found) + await _check_crons(store, resolve=resolve)


def _add_up(found: list[Finding]) -> list[Finding]:
    """Merge the findings that only count jobs into one for each problem."""
    counted: dict[str, Finding] = {}
    for each in found:
        if (number := each.about.get("jobs")) is not None:
            former = counted.get(each.problem, each)
            jobs = cast(int, number) + (
                cast(int, former.about["jobs"]) if former is not each else 0
            )
            about = {**former.about, "jobs": jobs}
            counted[each.problem] = msgspec.structs.replace(former, about=about)
    return [each for each in found if "jobs" not in each.about] + [*counted.values()]


async def _check_crons(store: Store, *, resolve: bool) -> list[Finding]:
    """Find recurring jobs whose next run is later than their cron expression's next time."""
    found: list[Finding] = []
    now, offset = await store.now(), 0
    while page := await store.recurring(offset=offset, count=PAGE):
        offset += len(page)
        moves: list[TickRow] = []
        for record in page:
            if not record["cron"] or record["next"] is None:
                continue
            jid, former = record["jid"], record["next"]
            due = right_tick(record["cron"], record["timezone"] or "UTC", former, now)
            if due is None:
                continue
            moves.append({"jid": jid, "tick": former, "at": due, "next": due})
            about = {"jid": jid, "next": former, "due": due}
            found.append(Finding(problem="recurring-late", fixed=resolve, about=about))
        if resolve and moves:  # one that a worker has moved meanwhile stays as it is
            await store.tick(batch=moves)
    return found
