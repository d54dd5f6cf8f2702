"""One queue: its day, and its jobs by state."""

from __future__ import annotations

import time

from aioqless.contrib.dashboard.page_request import SIZE, Asked, Page
from aioqless.contrib.dashboard.sampler import QueueNow, unserved

TABS = ("waiting", "running", "scheduled", "stalled", "depends", "recurring", "statistics")


async def queue(asked: Asked) -> Page:
    name, tab = asked.text("name"), asked.one_of("tab", TABS)
    if not name:
        raise KeyError(name)
    queue = asked.client.queue(name)
    counts = QueueNow(**await queue.counts())
    values: dict[str, object] = {
        "queue": counts,
        "tab": tab,
        "tabs": TABS,
        "jobs": [],
        "total": 0,
        "rates": asked.board.sampler.rates(name),
        "failed": sum(
            count
            for group, count in (await asked.client.jobs.failed()).items()
            if name.lower() in group.lower()
        ),
        "unserved_since": (await unserved(asked.client, [counts])).get(name),
    }
    if tab == "statistics":
        day = asked.number("day", round(time.time()), 0, 10**11)
        values |= {
            "day": day - day % 86400,
            "stats": await queue.stats(day),
            "days": await queue.days(),
            "today": round(time.time()) // 86400 * 86400,
        }
    elif tab == "recurring":
        records = await asked.client.store.recurring(queue=name, offset=asked.offset, count=SIZE)
        values |= {"jobs": records, "total": counts.recurring}
    else:
        jids = await queue.jobs(tab, offset=asked.offset, count=SIZE)
        values |= {
            "jobs": await asked.client.jobs.glances(*jids) if jids else [],
            "total": getattr(counts, tab),
        }
    known = any(each.name == name for each in asked.board.sampler.latest.queues)
    return Page("queue.html", f"{name} · queue", values | {"known": known})
