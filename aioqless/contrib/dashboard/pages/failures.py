"""Failures: by group, with their trend and the latest of each; and the jobs of one group."""

from __future__ import annotations

import time

from aioqless.contrib.dashboard.page_request import SIZE, Asked, Page

GROUPS = 25


async def failures(asked: Asked) -> Page:
    counts = await asked.client.jobs.failed()
    wanted, sort = asked.text("q").lower(), asked.one_of("sort", ("count", "name"))
    names = [name for name in counts if wanted in name.lower()]
    names.sort(key=lambda name: (name.lower() if sort == "name" else -counts[name], name))
    page = names[asked.offset : asked.offset + GROUPS]
    values = {
        "groups": await asked.client.jobs.failures(*page) if page else [],
        "total": len(names),
        "all": sum(counts.values()),
        "wanted": asked.text("q"),
        "sort": sort,
        "now": time.time(),
    }
    return Page("failures.html", "Failures", values)


async def group(asked: Asked) -> Page:
    name = asked.text("name")
    if not name:
        raise KeyError(name)
    jids = await asked.client.jobs.failed_jids(name, offset=asked.offset, count=SIZE)
    (glance,) = await asked.client.jobs.failures(name)
    values = {
        "group": glance,
        "jobs": await asked.client.jobs.glances(*jids) if jids else [],
        "now": time.time(),
    }
    return Page("group.html", f"{name} · failures", values)
