"""Jobs from all queues: completed, tracked, by tag, by what somebody looks for."""

from __future__ import annotations

import time

from aioqless.contrib.dashboard.page_request import SIZE, Asked, Page

MOST_FOUND = 100
PATIENCE = 0.02  # seconds of searching in one look; whoever wants more goes on from there
PORTION = 1000  # keys


async def completed(asked: Asked) -> Page:
    jids = await asked.client.jobs.complete(offset=asked.offset, count=SIZE + 1)
    jobs = await asked.client.jobs.glances(*jids[:SIZE]) if jids else []
    return Page("completed.html", "Completed", {"jobs": jobs, "further": len(jids) > SIZE})


async def tracked(asked: Asked) -> Page:
    jobs, gone = await asked.client.jobs.tracked()
    newest = list(reversed(jobs))
    page = newest[asked.offset : asked.offset + SIZE]
    shown = await asked.client.jobs.glances(*[job.jid for job in page]) if page else []
    return Page("tracked.html", "Tracked", {"jobs": shown, "gone": gone[:SIZE], "total": len(jobs)})


async def tags(asked: Asked) -> Page:
    names = await asked.client.jobs.tags(offset=asked.offset, count=2 * SIZE)
    return Page("tags.html", "Tags", {"tags": names, "further": len(names) == 2 * SIZE}, live=False)


async def tag(asked: Asked) -> Page:
    name = asked.text("name")
    total, jids = (
        await asked.client.jobs.tagged(name, offset=asked.offset, count=SIZE) if name else (0, [])
    )
    jobs = await asked.client.jobs.glances(*jids) if jids else []
    return Page("tag.html", f"{name} · tag", {"name": name, "jobs": jobs, "total": total})


async def search(asked: Asked) -> Page:
    """A text may be a jid, a tag, a queue, a failure group; and a part of jobs' klass."""
    wanted = asked.text("q").strip()
    values: dict[str, object] = {
        "wanted": wanted,
        "exact": [],
        "jobs": [],
        "cursor": "0",
        "queues": [],
        "groups": [],
    }
    if wanted:
        sample = await asked.board.sampler.fresh(asked.client, within=10.0)
        low = wanted.lower()
        total, _ = await asked.client.jobs.tagged(wanted, count=1)
        cursor, jids = await _by_klass(asked, wanted)
        values |= {
            "exact": await asked.client.jobs.glances(wanted),
            "template": await asked.client.jobs.recurring(wanted),
            "tagged": total,
            "queues": [each.name for each in sample.queues if low in each.name.lower()][:20],
            "groups": [name for name in sample.failed if low in name.lower()][:20],
            "jobs": await asked.client.jobs.glances(*jids[:MOST_FOUND]) if jids else [],
            "cursor": cursor,
        }
    return Page("search.html", "Search", values, live=False)


async def _by_klass(asked: Asked, wanted: str) -> tuple[str, list[str]]:
    cursor, found = asked.text("cursor", "0"), dict[str, None]()
    cursor = cursor if cursor.isascii() and cursor.isdigit() and len(cursor) < 20 else "0"
    until = time.monotonic() + PATIENCE
    while True:
        cursor, jids = await asked.client.jobs.find(wanted, cursor=cursor, count=PORTION)
        found |= dict.fromkeys(jids)
        if cursor == "0" or len(found) >= MOST_FOUND or time.monotonic() > until:
            return cursor, list(found)
