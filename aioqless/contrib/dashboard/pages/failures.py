"""Failures by error, by klass too, or by group; and the jobs of one of these."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from functools import partial

from aioqless.client.codec import ENCRYPTED
from aioqless.client.failures import (
    DEPLOY_AGE,
    MAX_GROUPS,
    Cause,
    find_causes,
    find_groups,
    note_cut,
    sort_causes,
    sort_groups,
)
from aioqless.client.job.summaries import JobSummary
from aioqless.contrib.dashboard.dashboard import CACHED_FOR
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.dashboard.pages.job import readable_data
from aioqless.contrib.dashboard.redaction import TOO_LONG
from aioqless.contrib.metrics import Mark

ROWS_PER_PAGE = 25
GROUPS_PER_SECOND = 1  # whose causes are read again for live pages
MAX_DATA = 1 << 20  # bytes of long or encrypted data that a page reads to hide secrets in messages
SORTS = ("rising", "count", "latest", "new")


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
        names = [name for name in sort_groups(counts) if search in name.lower()]
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
    read = partial(request.client.metrics.marks, DEPLOY_AGE)
    marks = await request.dashboard.cached("marks", read)
    return next((mark for mark in marks if mark.deploy), None)


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
