"""What lists show of jobs, failure groups and workers: a little of many, read in one call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from aioqless.client.job.record import is_stalled


@dataclass(frozen=True, kw_only=True)
class Glance:
    """A job without its history. Times are seconds since 1970, 0 where there is none.

    `time` is when it was put, or popped if it runs; `due` is when a scheduled one may run. `group`,
    `message` and `failed` are about its last failure; of a message of more than 1,000 bytes, such
    as a long traceback, the middle is left out. `data` is the stored text, None where it is longer
    than 2,000 bytes; `size` is how long it is."""

    jid: str
    klass: str
    state: str
    queue: str
    worker: str
    priority: float
    retries: int
    remaining: int
    expires: float
    tags: list[str]
    time: float
    due: float
    group: str
    message: str
    failed: float
    data: str | None
    size: int

    @property
    def is_stalled(self) -> bool:
        """Whether it runs and its lock has expired."""
        return is_stalled(self.state, self.expires)


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """How many jobs failed in a group and the latest of them. `marks` are (n, when), the latest
    first: since `when`, n have failed."""

    group: str
    total: int
    latest: Glance | None
    marks: list[tuple[int, float]]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        latest = Glance(**record["latest"]) if record["latest"] else None
        marks = [(int(rank), float(when)) for rank, when in record["marks"]]
        return cls(group=record["group"], total=record["total"], latest=latest, marks=marks)

    def since(self, when: float) -> float:
        """About how many have failed since a time; between two marks as if evenly."""
        times = [-each for _, each in self.marks]  # ascending
        at = bisect_right(times, -when)
        if at == 0:
            return 0
        if at == len(self.marks):
            return self.marks[-1][0]
        (few, late), (many, early) = self.marks[at - 1], self.marks[at]
        return few + (many - few) * (late - when) / (late - early) if late > early else many


@dataclass(frozen=True, kw_only=True)
class WorkerGlance:
    """What a worker holds: `doing` are the first few of its jobs. `seen` is when it was last heard
    of, 0 for one that isn't known."""

    name: str
    seen: float
    jobs: int
    stalled: int
    doing: list[Glance]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        return cls(**{**record, "doing": [Glance(**each) for each in record["doing"]]})
