"""Failures by error, by klass too, or by group; and the jobs of one of these."""

from __future__ import annotations

import asyncio
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from aioqless.client import Client
from aioqless.client.codec import ENCRYPTED
from aioqless.client.job.summaries import FailureGroup, JobSummary
from aioqless.contrib.dashboard.dashboard import CACHED_FOR
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.dashboard.pages.job import readable_data
from aioqless.contrib.dashboard.redaction import TOO_LONG
from aioqless.contrib.metrics import Mark

ROWS_PER_PAGE = 25
MAX_GROUPS = 200  # of which jobs are sampled, and of an error changed: the largest
GROUPS_PER_CALL = 100
GROUPS_PER_SECOND = 1  # whose causes are read again for live pages
SAMPLE, LEAST = 600, 3  # jobs in all, and of each group
HOUR = 3600
MAX_DATA = 1 << 20  # bytes of long or encrypted data that a page reads to hide secrets in messages
SORTS = ("rising", "count", "latest", "new")


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


async def list_groups(request: PageRequest) -> Page:
    """List what fails: by error and klass, or by group."""
    counts, now = await request.client.jobs.failed_counts(), time.time()
    search, by = request.text("q").lower(), request.one_of("by", ("error", "class", "group"))
    values = {
        "all": sum(counts.values()),
        "total": len(counts),
        "by": by,
        "search": request.text("q"),
        "sort": request.one_of("sort", SORTS),
        "now": now,
        "deploy": await find_deploy(request),
    }
    if by == "group":
        names = [name for name in _sort_groups(counts) if search in name.lower()]
        page = names[request.offset : request.offset + ROWS_PER_PAGE]
        read = partial(request.client.jobs.failure_groups, *page)
        groups = await request.shared(("groups", *page), read) if page else []
        latest = (group.latest for group in groups if group.latest)
        shown = await hide_secrets(request, latest)
        values |= {"groups": groups, "found": len(names), "shown": shown}
        return Page("failures.html", "Failures", values)
    causes = [
        each
        for each in await read_causes(request, counts, by_klass=by == "class")
        if any(search in text.lower() for text in (each.error, *each.klasses, *each.queues))
    ]
    sort_causes(causes, now, str(values["sort"]))
    causes_shown = causes[request.offset : request.offset + ROWS_PER_PAGE]
    values |= {
        "causes": note_cut(causes_shown, counts),
        "shown": await hide_secrets(request, (cause.latest for cause in causes_shown)),
        "found": len(causes),
        "sampled": sum(len(each.jobs) for each in causes),
        "max_groups": MAX_GROUPS,
    }
    return Page("failures.html", "Failures", values)


async def show_group(request: PageRequest) -> Page:
    """Show the jobs of a failure group, or those of an error in all groups, perhaps of a klass."""
    name, error, klass = request.text("name"), request.text("error"), request.text("klass")
    jobs = request.client.jobs
    if error:
        counts = find_groups(await jobs.failed_counts(), error)
        found = await read_causes(request, counts, by_klass=bool(klass))
        found = [each for each in found if (each.error, each.klass) == (error, klass)]
        cause = next(iter(note_cut(found, counts)), None)
        shown = cause.jobs[request.offset : request.offset + PAGE_SIZE] if cause else []
        title = f"{error} in {klass}" if klass else error
    elif name:
        jids = await jobs.failed_jids(name, offset=request.offset, count=PAGE_SIZE)
        (group,) = await jobs.failure_groups(name)
        shown = await jobs.summaries(*jids) if jids else []
        cause = Cause(name, "", [(group, 1.0)], shown or [group.latest]) if group.latest else None
        title = name
    else:
        raise KeyError(name)
    workers = [worker for worker, _ in cause.count("failed_by") if worker] if cause else []
    facts = await request.client.metrics.workers(*workers) if workers else {}
    values = {
        "versions": sorted({each.version for each in facts.values() if each.version}),
        "title": title,
        "cause": cause,
        "selected": {"error": error, "klass": klass} if error else {"group": name},
        "jobs": shown,
        "shown": await hide_secrets(request, [*([cause.latest] if cause else []), *shown]),
        "now": time.time(),
        "deploy": await find_deploy(request),
    }
    return Page("group.html", f"{title} · failures", values)


async def hide_secrets(request: PageRequest, jobs: Iterable[JobSummary]) -> dict[str, str]:
    """Return the messages of failed jobs by jid, without secrets.

    A message may repeat hidden values of the data: data that the summaries lack is read.
    """
    redaction, left = request.dashboard.redaction, MAX_DATA
    messages: dict[str, str] = {}
    shown: dict[str, str] = {}
    for job in jobs:
        if job.data is not None and ENCRYPTED not in job.data:
            shown[job.jid] = redaction.redact(job.message, job.data)
        elif job.jid not in shown:
            shown[job.jid] = TOO_LONG
            if job.size <= left:
                left -= job.size
                messages[job.jid] = job.message
    for each in await request.client.jobs.multiget(*messages) if messages else ():
        message, data = messages[each.jid], readable_data(each)
        shown[each.jid] = await asyncio.to_thread(redaction.redact, message, data)
    return shown


async def find_deploy(request: PageRequest) -> Mark | None:
    """Return the last deploy of the last 24 hours."""
    read = partial(request.client.metrics.marks, 24 * HOUR)
    marks = await request.dashboard.cached("marks", read)
    return next((mark for mark in marks if mark.deploy), None)


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
    return {name: counts[name] for name in _sort_groups(counts) if _may_have(name, error)}


def list_largest(counts: Mapping[str, int]) -> list[str]:
    """Return the largest groups: those of which jobs are sampled, or changed."""
    return _sort_groups(counts)[:MAX_GROUPS]


def note_cut(causes: Sequence[Cause], counts: Mapping[str, int]) -> Sequence[Cause]:
    """Note which causes may have jobs in groups that are left out, and return the causes."""
    left_out = _sort_groups(counts)[MAX_GROUPS:]
    for cause in causes:
        cause.is_cut = any(_may_have(name, cause.error) for name in left_out)
    return causes


def _sort_groups(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))


def _may_have(group: str, error: str) -> bool:
    return group == error or group.endswith(f"-{error}")


async def read_causes(
    request: PageRequest, counts: Mapping[str, int], *, by_klass: bool = False
) -> list[Cause]:
    """Return the causes of failures; pages that read the same counts share them.

    Live pages share them longer, whatever the counts are: they may cost thousands of commands.
    """
    find = partial(find_causes, request.client, counts, by_klass=by_klass)
    shared = frozenset(counts if request.is_live else counts.items())
    least = max(CACHED_FOR, len(counts) / GROUPS_PER_SECOND) if request.is_live else CACHED_FOR
    return list(await request.dashboard.cached(("causes", by_klass, shared), find, least=least))


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
