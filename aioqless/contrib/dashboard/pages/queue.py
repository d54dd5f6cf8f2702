"""One queue: its jobs by state, and its statistics."""

from __future__ import annotations

import time

from aioqless.client.coverage import read_coverage
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest

DAY = 86_400
TABS = (
    "waiting",
    "running",
    "scheduled",
    "stalled",
    "depends",
    "recurring",
    "tenants",
    "statistics",
)


async def show_queue(request: PageRequest) -> Page:
    """Show a queue."""
    name, tab = request.text("name"), request.one_of("tab", TABS)
    if not name:
        raise KeyError(name)
    queue, sampler = request.client.queue(name), request.dashboard.sampler
    counts = await queue.counts()
    workers = await request.client.workers.counts()
    coverage = await read_coverage(request.client.internals.store, [counts], workers)
    groups = await request.client.jobs.failed_counts()
    values: dict[str, object] = {
        "queue": counts,
        "tab": tab,
        "tabs": TABS,
        "jobs": [],
        "total": 0,
        "rates": sampler.rates(name),
        "failed": sum(count for group, count in groups.items() if name.lower() in group.lower()),
        "delay": coverage.delays.get(name),
        "known": any(each.name == name for each in sampler.latest.queues),
    }
    if tab == "statistics":
        now = round(time.time())
        day = request.number("day", now, 0, 10**11)
        values |= {
            "day": day - day % DAY,
            "stats": await queue.stats(day),
            "days": await queue.days(),
            "today": now // DAY * DAY,
        }
    elif tab == "recurring":
        jobs = await request.client.recurring.page(name, offset=request.offset, count=PAGE_SIZE)
        values |= {"jobs": jobs, "total": counts.recurring}
    elif tab == "tenants":
        values["tenants"] = await queue.tenants(offset=request.offset, count=PAGE_SIZE)
        # A full page may show fewer: tenants without jobs are left out.
        beyond = request.offset + PAGE_SIZE
        values["has_more"] = bool(await queue.tenants(offset=beyond, count=PAGE_SIZE))
    else:
        jids = await queue.jids(tab, offset=request.offset, count=PAGE_SIZE)
        jobs_found = await request.client.jobs.summaries(*jids) if jids else []
        values |= {"jobs": jobs_found, "total": getattr(counts, tab)}
    return Page("queue.html", f"{name} · queue", values)
