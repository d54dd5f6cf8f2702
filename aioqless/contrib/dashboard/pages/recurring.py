"""Recurring jobs: what comes by itself, and when next."""

from __future__ import annotations

from itertools import islice
from typing import Any

from aioqless.contrib.dashboard.page_request import SIZE, Asked, Page
from aioqless.contrib.dashboard.pages.jobs import ticks


async def recurring(asked: Asked) -> Page:
    """Those with a cron expression and those that are paused, then those of each queue."""
    skip, found = asked.offset, list[Any]()
    sample = await asked.board.sampler.fresh(asked.client, within=5.0)
    page = await asked.client.store.recurring(queue=None, offset=skip, count=SIZE + 1)
    found += page
    if not page and skip:
        skip -= await _count_timed(asked, skip)
    else:
        skip = 0
    for queue in sample.queues:
        if len(found) > SIZE:
            break
        if queue.recurring > skip:
            found += await asked.client.store.recurring(
                queue=queue.name, offset=skip, count=SIZE + 1 - len(found)
            )
        skip = max(0, skip - queue.recurring)
    rows = [
        (each, ticks(each["cron"], each["timezone"], each["interval"], each["next"], 3))
        for each in islice(found, SIZE)
    ]
    return Page("recurring.html", "Recurring jobs", {"rows": rows, "further": len(found) > SIZE})


async def _count_timed(asked: Asked, most: int) -> int:
    """How many there are of no queue's turns, by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if await asked.client.store.recurring(queue=None, offset=middle, count=1):
            low = middle + 1
        else:
            high = middle
    return low
