"""Recurring jobs of the whole namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioqless.recurring import RecurringJob
from aioqless.scripts import Scripts

PAGE = 100


async def recurring_jobs(scripts: Scripts) -> AsyncIterator[RecurringJob]:
    """Those of no queue's turns, then those of each queue."""
    async for job in _listed(scripts, None):
        yield job
    offset = 0
    while page := await scripts("queues", offset=offset):
        for counts in page:
            if counts["recurring"]:
                async for job in _listed(scripts, counts["name"]):
                    yield job
        offset += len(page)


async def _listed(scripts: Scripts, queue: str | None) -> AsyncIterator[RecurringJob]:
    offset = 0
    while page := await scripts("recurring", queue=queue, offset=offset, count=PAGE):
        for record in page:
            yield RecurringJob(scripts, record)
        offset += PAGE
