"""The consistency check of a namespace, in calls of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import msgspec

from aioqless.client.job_data import Json
from aioqless.store import Store


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One inconsistency.

    Attributes:
        problem: Kind of problem, as `aioqless lua check` lists them.
        mended: Whether it was repaired.
        about: What it concerns, such as `jid`, `queue` or `key`.
    """

    problem: str
    mended: bool
    about: dict[str, Json]

    @classmethod
    def from_record(cls, record: Mapping[str, Json]) -> Self:
        """Build a finding from the reply of the command `check`."""
        about = {name: each for name, each in record.items() if name not in ("problem", "mended")}
        return cls(problem=str(record["problem"]), mended=bool(record["mended"]), about=about)


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
            return found
