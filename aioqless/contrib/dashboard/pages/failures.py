"""Failure groups with their trend and latest failure, and the jobs of one group."""

from __future__ import annotations

import time

from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest

GROUPS_PER_PAGE = 25


async def list_groups(request: PageRequest) -> Page:
    """List the failure groups, by count or by name."""
    counts = await request.client.jobs.failed_counts()
    search, sort = request.text("q").lower(), request.one_of("sort", ("count", "name"))
    names = [name for name in counts if search in name.lower()]
    names.sort(key=lambda name: (name.lower() if sort == "name" else -counts[name], name))
    page = names[request.offset : request.offset + GROUPS_PER_PAGE]
    values = {
        "groups": await request.client.jobs.failure_groups(*page) if page else [],
        "total": len(names),
        "all": sum(counts.values()),
        "search": request.text("q"),
        "sort": sort,
        "now": time.time(),
    }
    return Page("failures.html", "Failures", values)


async def show_group(request: PageRequest) -> Page:
    """Show the jobs of a failure group."""
    name = request.text("name")
    if not name:
        raise KeyError(name)
    jids = await request.client.jobs.failed_jids(name, offset=request.offset, count=PAGE_SIZE)
    (group,) = await request.client.jobs.failure_groups(name)
    values = {
        "group": group,
        "jobs": await request.client.jobs.summaries(*jids) if jids else [],
        "now": time.time(),
    }
    return Page("group.html", f"{name} · failures", values)
