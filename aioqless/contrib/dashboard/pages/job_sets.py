"""Job sets and unfinished workflows, and one job set with its members."""

from __future__ import annotations

import asyncio

from aioqless.client.job import Job
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.errors import NoSuchSet

MAX_QUEUES, BLOCKED = 10, 20  # whose blocked jobs are read, and how many of each
SAMPLE_AGE = 5.0  # seconds
PLACES = ("failed", "open", "held", "canceled", "results")


async def list_sets(request: PageRequest) -> Page:
    """List the job sets, the latest first, and workflows that have not ended."""
    found = await request.client.job_sets(offset=request.offset, count=PAGE_SIZE + 1)
    values = {
        "sets": found[:PAGE_SIZE],
        "has_more": len(found) > PAGE_SIZE,
        "workflows": await _find_workflows(request) if not request.offset else [],
        "read": MAX_QUEUES * BLOCKED,
    }
    return Page("job_sets.html", "Workflows", values)


async def _find_workflows(request: PageRequest) -> list[tuple[Job, int]]:
    """Return last steps of workflows among a sample of blocked jobs.

    Each with the number of failed jobs that it waits for, of the first ten.
    """
    client = request.client
    sample = await request.dashboard.sampler.refresh(client, max_age=SAMPLE_AGE)
    queues = sorted(sample.queues, key=lambda queue: -queue.depends)[:MAX_QUEUES]
    pages = await asyncio.gather(
        *(client.queue(each.name).jids("depends", count=BLOCKED) for each in queues if each.depends)
    )
    jids = [jid for page in pages for jid in page]
    blocked = await client.jobs.multiget(*jids) if jids else []
    last = [job for job in blocked if not job.details.dependents_total][:PAGE_SIZE]
    waits = {job.jid: job.dependencies[:10] for job in last}
    others = list(dict.fromkeys(jid for each in waits.values() for jid in each))
    states = dict(zip(others, await client.internals.store.states(jids=others), strict=True))
    return [(job, sum(states[jid] == "failed" for jid in waits[job.jid])) for job in last]


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
