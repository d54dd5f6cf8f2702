"""Job sets, and one of them with its members."""

from __future__ import annotations

from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.errors import NoSuchSet

PLACES = ("failed", "open", "held", "canceled", "results")


async def list_sets(request: PageRequest) -> Page:
    """List the job sets, the latest first."""
    found = await request.client.job_sets(offset=request.offset, count=PAGE_SIZE + 1)
    values = {"sets": found[:PAGE_SIZE], "has_more": len(found) > PAGE_SIZE}
    return Page("job_sets.html", "Job sets", values)


async def show_set(request: PageRequest) -> Page:
    """Show the progress of a job set, its failure groups, and some members."""
    name, place = request.text("name"), request.one_of("place", PLACES)
    job_set = request.client.job_set(name or "-")
    try:
        status = await job_set.status()
    except NoSuchSet:
        raise KeyError(name) from None
    jids: list[str] = []
    async for jid in job_set.jids(place):
        jids.append(jid)
        if len(jids) == PAGE_SIZE:
            break
    jobs = await request.client.jobs.summaries(*jids) if jids and place != "canceled" else []
    values = {"job_set": status, "jobs": jobs, "place": place, "places": PLACES, "jids": jids}
    return Page("job_set.html", f"{name} · job sets", values)
