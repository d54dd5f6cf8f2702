"""Job sets and unfinished workflows, and one job set with its members."""

from __future__ import annotations

import asyncio
from functools import partial

from aioqless.client.job import JobRecord
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.dashboard.pages.job import DependencyGraph
from aioqless.errors import NoSuchSet

MAX_WORKFLOWS = 10
MAX_QUEUES, BLOCKED = 10, 20  # whose blocked jobs are read, and how many of each
PLACES = ("failed", "open", "held", "canceled", "results")


async def list_sets(request: PageRequest) -> Page:
    """List the job sets, the latest first, and workflows that have not ended."""
    found = await request.client.job_sets(offset=request.offset, count=PAGE_SIZE + 1)
    values = {
        "sets": found[:PAGE_SIZE],
        "has_more": len(found) > PAGE_SIZE,
        "workflows": await request.dashboard.cached("workflows", partial(_find_workflows, request)),
        "read": MAX_QUEUES * BLOCKED,
    }
    return Page("job_sets.html", "Workflows", values)


async def _find_workflows(request: PageRequest) -> list[tuple[JobRecord, DependencyGraph]]:
    """Return last steps of workflows among a sample of blocked jobs, with the jobs before them."""
    client = request.client
    overview = await request.read_overview()
    queues = sorted(overview.queues, key=lambda queue: -queue.depends)[:MAX_QUEUES]
    pages = await asyncio.gather(
        *(client.queue(each.name).jids("depends", count=BLOCKED) for each in queues if each.depends)
    )
    jids = [jid for page in pages for jid in page]
    blocked = await client.jobs.multiget(*jids) if jids else []
    last = [job for job in blocked if not job.details.dependents_total][:MAX_WORKFLOWS]
    graphs = [DependencyGraph(job) for job in last]
    await asyncio.gather(*(graph.read(client) for graph in graphs))
    return list(zip(last, graphs, strict=True))


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
