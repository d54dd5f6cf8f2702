"""The list of recurring jobs."""

from __future__ import annotations

from itertools import islice

from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest

TICKS = 3


async def list_recurring(request: PageRequest) -> Page:
    """List recurring jobs: those with a cron expression and paused ones, then by queue."""
    skip, client = request.offset, request.client
    overview = await request.read_overview()
    found = await client.recurring.page(offset=skip, count=PAGE_SIZE + 1)
    if not found and skip:
        skip -= await _count_timed(request, skip)
    else:
        skip = 0
    for queue in overview.queues:
        if len(found) > PAGE_SIZE:
            break
        if queue.recurring > skip:
            found += await client.recurring.page(
                queue.name, offset=skip, count=PAGE_SIZE + 1 - len(found)
            )
        skip = max(0, skip - queue.recurring)
    shown = list(islice(found, PAGE_SIZE))
    latest = await client.jobs.summaries(*(f"{job.jid}-{job.count}" for job in shown))
    runs = {run.jid: run for run in latest}
    rows = [
        (job, job.upcoming(TICKS, after=overview.when), runs.get(f"{job.jid}-{job.count}"))
        for job in shown
    ]
    values = {"rows": rows, "has_more": len(found) > PAGE_SIZE}
    return Page("recurring.html", "Recurring jobs", values)


async def _count_timed(request: PageRequest, most: int) -> int:
    """Count the jobs that are listed before those of the queues, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if await request.client.recurring.page(offset=middle, count=1):
            low = middle + 1
        else:
            high = middle
    return low
