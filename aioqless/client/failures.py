"""Failures by error: what failed jobs of all queues have in common, and what of it rises."""

from __future__ import annotations

import asyncio
import operator
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aioqless.client.client import Client
from aioqless.client.job.summaries import FailureGroup, JobSummary

MAX_GROUPS = 200  # of which jobs are sampled, and of an error changed: the largest
GROUPS_PER_CALL = 100
SAMPLE, LEAST = 600, 3  # jobs in all, and of each group
HOUR = 3600
DEPLOY_AGE = 24 * HOUR  # maximum age of a deploy with which failures are compared


@dataclass
class Cause:
    """What failed jobs have in common: an error, perhaps also a klass; or a group.

    Attributes:
        error: The group without the queue, or with it.
        klass: The klass; empty for any.
        parts: Groups, each with the share of its sampled jobs that belong to it.
        jobs: The sampled jobs, the latest failure first.
        is_estimate: Whether there may be more or fewer jobs than the sample lets expect.
        is_cut: Whether it may have jobs in groups that were left out.
    """

    error: str
    klass: str = ""
    parts: list[tuple[FailureGroup, float]] = field(default_factory=list)
    jobs: list[JobSummary] = field(default_factory=list)
    is_estimate: bool = False
    is_cut: bool = False

    @property
    def total(self) -> int:
        """Number of jobs, estimated from the sample unless it is that of whole groups."""
        return round(sum(group.total * share for group, share in self.parts))

    @property
    def first(self) -> float:
        """When the first of the jobs failed, as far as the sample says."""
        return min(
            group.marks[-1][1]
            if share == 1 and group.marks
            else min(
                (job.failed for job in self.jobs if job.group == group.group), default=time.time()
            )
            for group, share in self.parts
        )

    @property
    def latest(self) -> JobSummary:
        """The job that failed last."""
        return self.jobs[0]

    @property
    def queues(self) -> list[str]:
        """The queues of the sampled jobs."""
        return sorted({job.queue for job in self.jobs})

    @property
    def klasses(self) -> list[str]:
        """The klasses of the sampled jobs, the most frequent first."""
        return [klass for klass, _ in Counter(job.klass for job in self.jobs).most_common()]

    def count(self, attribute: str) -> list[tuple[str, int]]:
        """Return the values that sampled jobs have, the most frequent first."""
        return Counter(getattr(job, attribute) for job in self.jobs).most_common(8)

    def since(self, when: float) -> float:
        """Estimate how many jobs failed since a time, in seconds since 1970."""
        return sum(group.since(when) * share for group, share in self.parts)

    def is_exact_since(self, when: float) -> bool:
        """Return whether `since` is no estimate: none has failed since then, or all have."""
        return not self.is_estimate and all(
            share == 1 and group.since(when) in (0, group.total) for group, share in self.parts
        )

    def growth(self, now: float) -> tuple[int, int]:
        """Return how many failed in the last hour, and in the one before."""
        hour = self.since(now - HOUR)
        return round(hour), round(max(0.0, self.since(now - 2 * HOUR) - hour))

    def is_rising(self, now: float) -> bool:
        """Return whether more failed in the last hour than in the one before."""
        hour, before = self.growth(now)
        return hour > before


def sort_causes(causes: list[Cause], now: float, by: str = "rising") -> None:
    """Sort causes by growth, number, latest or first failure, the highest first."""
    keys: dict[str, Callable[[Cause], float]] = {
        "rising": lambda cause: operator.sub(*cause.growth(now)),
        "count": lambda cause: cause.total,
        "latest": lambda cause: cause.latest.failed,
        "new": lambda cause: cause.first,
    }
    causes.sort(key=lambda cause: (-keys[by](cause), -cause.total, cause.error))


def find_groups(counts: Mapping[str, int], error: str) -> dict[str, int]:
    """Return the groups that an error may belong to, the largest first."""
    return {name: counts[name] for name in sort_groups(counts) if _may_have(name, error)}


def list_largest(counts: Mapping[str, int]) -> list[str]:
    """Return the largest groups: those of which jobs are sampled, or changed."""
    return sort_groups(counts)[:MAX_GROUPS]


def note_cut(causes: Sequence[Cause], counts: Mapping[str, int]) -> Sequence[Cause]:
    """Note which causes may have jobs in groups that are left out, and return the causes."""
    left_out = sort_groups(counts)[MAX_GROUPS:]
    for cause in causes:
        cause.is_cut = any(_may_have(name, cause.error) for name in left_out)
    return causes


def sort_groups(counts: Mapping[str, int]) -> list[str]:
    """Return the names of failure groups, the largest first."""
    return sorted(counts, key=lambda name: (-counts[name], name))


def _may_have(group: str, error: str) -> bool:
    return group == error or group.endswith(f"-{error}")


async def find_causes(
    client: Client, counts: Mapping[str, int], *, by_klass: bool = False
) -> list[Cause]:
    """Read a sample of the failed jobs of groups, and group them by error.

    Of the groups in `counts`, all but the largest are left out.
    """
    names = list_largest(counts)
    count = max(LEAST, SAMPLE // max(1, len(names)))
    portions = range(0, len(names), GROUPS_PER_CALL)
    pages, groups = await asyncio.gather(
        asyncio.gather(*(client.jobs.failed_jids(name, count=count) for name in names)),
        asyncio.gather(
            *(client.jobs.failure_groups(*names[at : at + GROUPS_PER_CALL]) for at in portions)
        ),
    )
    jids = [jid for page in pages for jid in page]
    sampled: dict[str, list[JobSummary]] = {}
    for job in await client.jobs.summaries(*jids) if jids else []:
        sampled.setdefault(job.group, []).append(job)
    causes: dict[tuple[str, str], Cause] = {}
    for group in (each for page in groups for each in page):
        jobs = sampled.get(group.group, [])
        parts: dict[tuple[str, str], list[JobSummary]] = {}
        for job in jobs:
            parts.setdefault((job.error, job.klass if by_klass else ""), []).append(job)
        for key, part in parts.items():
            cause = causes.setdefault(key, Cause(*key))
            cause.parts.append((group, len(part) / len(jobs)))
            cause.jobs += part
            cause.is_estimate |= len(jobs) < group.total and (by_klass or len(part) < len(jobs))
    for cause in causes.values():
        cause.jobs.sort(key=lambda job: -job.failed)
    return list(causes.values())
