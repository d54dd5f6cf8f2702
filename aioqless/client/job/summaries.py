"""Summaries of jobs, failure groups and workers for lists, read many in one call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from aioqless.client.job.state import is_stalled


class JobSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job without its history. Times are in seconds since 1970, 0 for none.

    Attributes:
        jid: Id of the job.
        klass: Name that selects its handler.
        state: Where it is in its lifecycle.
        queue: Name of its queue.
        worker: Name of the worker that holds it.
        priority: Lower runs sooner.
        retries: Maximum number of retries.
        remaining: Number of retries that are left.
        expires: When its lock expires.
        tags: Its tags.
        time: When it was put, or popped if it runs.
        due: When it may run, if it is scheduled.
        group: Group of its last failure.
        message: Message of its last failure; of more than 1,000 bytes the middle is left out.
        failed: When it failed last.
        failed_by: The worker that ran it when it failed last.
        data: The stored data; None if it is longer than 2,000 bytes.
        size: Length of the stored data, in bytes.
        last_queue: The queue that it completed in.
        last_worker: The worker that completed it.
        ran: How long its last run took, in seconds, if it is complete.
    """

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
    failed_by: str
    data: str | None
    size: int
    last_queue: str = ""
    last_worker: str = ""
    ran: float | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether it runs and its lock has expired."""
        return is_stalled(self.state, self.expires)

    @property
    def error(self) -> str:
        """The group of its last failure without the queue, which is the name of the exception."""
        return self.group.removeprefix(f"{self.queue}-")


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """A portion of a search of `Jobs.search`. The counts are those of the search up to its end.

    Attributes:
        jids: The jobs that the portion has found.
        searched: Number of jobs that were searched.
        total: How many jobs there were to search when the search began.
        unsearched: Number of jobs that were left out, since their data is encrypted, signed, above
            64 KB, or above a part of this with many conditions on the data.
        found: Number of jobs that were found.
        cursor: Where the next call continues; empty at the end.
    """

    jids: list[str]
    searched: int
    total: int
    unsearched: int
    found: int
    cursor: str


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The failed jobs of a group.

    Attributes:
        group: Name of the group.
        total: Number of its jobs.
        latest: The job that failed last; None if there is none.
        marks: Pairs of a number of jobs and the time since which that many failed, latest first.
    """

    group: str
    total: int
    latest: JobSummary | None
    marks: list[tuple[int, float]]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build it from the reply of the command `failures`."""
        return cls(
            group=record["group"],
            total=record["total"],
            latest=JobSummary(**record["latest"]) if record["latest"] else None,
            marks=[(int(rank), float(when)) for rank, when in record["marks"]],
        )

    def since(self, when: float) -> float:
        """Estimate how many jobs failed since a time, in seconds since 1970.

        Between two marks they count as spread evenly.
        """
        times = [-time for _, time in self.marks]  # ascending
        at = bisect_right(times, -when)
        if at == 0:
            return 0
        if at == len(self.marks):
            return self.marks[-1][0]
        (few, late), (many, early) = self.marks[at - 1], self.marks[at]
        return few + (many - few) * (late - when) / (late - early) if late > early else many


class WorkerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A worker with the first few of its jobs.

    Attributes:
        name: Name of the worker.
        seen: When it was last seen, in seconds since 1970; 0 if it is not known.
        jobs: Number of jobs it holds with a valid lock.
        stalled: Number of jobs it holds with an expired lock.
        doing: The first few of its jobs.
        alive: Whether its process lives; None if it doesn't say, as workers of other qless clients
            and people don't.
        queues: Names and patterns of the queues it serves; None if it doesn't say.
    """

    name: str
    seen: float
    jobs: int
    stalled: int
    doing: list[JobSummary]
    alive: bool | None = None
    queues: list[str] | None = None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build it from the reply of the command `working`."""
        return cls(**{**record, "doing": [JobSummary(**each) for each in record["doing"]]})
