"""Lists of jobs from all queues: completed, tracked, by tag, and search."""

from __future__ import annotations

import time

from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest

MAX_FOUND = 100
MAX_NAMES_FOUND = 20
SEARCH_TIME = 0.02  # seconds per request; the user continues the search from there
SEARCH_STEP = 1000  # keys
SAMPLE_AGE = 10.0  # seconds


async def list_completed(request: PageRequest) -> Page:
    """List the completed jobs, latest first."""
    jids = await request.client.jobs.complete_jids(offset=request.offset, count=PAGE_SIZE + 1)
    jobs = await request.client.jobs.summaries(*jids[:PAGE_SIZE]) if jids else []
    values = {"jobs": jobs, "has_more": len(jids) > PAGE_SIZE}
    return Page("completed.html", "Completed", values)


async def list_tracked(request: PageRequest) -> Page:
    """List the tracked jobs, those tracked last first."""
    jobs, gone = await request.client.jobs.tracked()
    jids = [job.jid for job in reversed(jobs)][request.offset : request.offset + PAGE_SIZE]
    shown = await request.client.jobs.summaries(*jids) if jids else []
    values = {"jobs": shown, "gone": gone[:PAGE_SIZE], "total": len(jobs)}
    return Page("tracked.html", "Tracked", values)


async def list_tags(request: PageRequest) -> Page:
    """List the tags of two jobs or more, most frequent first."""
    names = await request.client.jobs.tags(offset=request.offset, count=2 * PAGE_SIZE)
    values = {"tags": names, "has_more": len(names) == 2 * PAGE_SIZE}
    return Page("tags.html", "Tags", values, live=False)


async def show_tag(request: PageRequest) -> Page:
    """List the jobs with a tag."""
    name, tagged = request.text("name"), request.client.jobs.tagged_jids
    total, jids = await tagged(name, offset=request.offset, count=PAGE_SIZE) if name else (0, [])
    jobs = await request.client.jobs.summaries(*jids) if jids else []
    return Page("tag.html", f"{name} · tag", {"name": name, "jobs": jobs, "total": total})


async def search(request: PageRequest) -> Page:
    """Search for a jid, a tag, a queue, a failure group, and for a part of klass names."""
    text, jobs = request.text("q").strip(), request.client.jobs
    values: dict[str, object] = {
        "search": text,
        "exact": [],
        "jobs": [],
        "cursor": "0",
        "queues": [],
        "groups": [],
    }
    if text:
        sample = await request.dashboard.sampler.refresh(request.client, max_age=SAMPLE_AGE)
        queues = [queue.name for queue in sample.queues if text.lower() in queue.name.lower()]
        groups = [name for name in sample.failed if text.lower() in name.lower()]
        total, _ = await jobs.tagged_jids(text, count=1)
        cursor, jids = await _find_by_klass(request, text)
        values |= {
            "exact": await jobs.summaries(text),
            "template": await request.client.recurring.get(text),
            "tagged": total,
            "queues": queues[:MAX_NAMES_FOUND],
            "groups": groups[:MAX_NAMES_FOUND],
            "jobs": await jobs.summaries(*jids[:MAX_FOUND]) if jids else [],
            "cursor": cursor,
        }
    return Page("search.html", "Search", values, live=False)


async def _find_by_klass(request: PageRequest, text: str) -> tuple[str, list[str]]:
    cursor, found = request.text("cursor", "0"), dict[str, None]()
    cursor = cursor if cursor.isascii() and cursor.isdigit() and len(cursor) < 20 else "0"
    until = time.monotonic() + SEARCH_TIME
    while True:
        cursor, jids = await request.client.jobs.find(text, cursor=cursor, count=SEARCH_STEP)
        found |= dict.fromkeys(jids)
        if cursor == "0" or len(found) >= MAX_FOUND or time.monotonic() > until:
            return cursor, list(found)
