"""Recurring jobs of the whole namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioqless.client.job.services import Services
from aioqless.client.recurring import RecurringJob

PAGE = 100


async def recurring_jobs(services: Services) -> AsyncIterator[RecurringJob]:
    """Those of no queue's turns, then those of each queue."""
    async for job in _listed(services, None):
        yield job
    offset = 0
    while page := await services.store.queues(offset=offset):
        for counts in page:
            if counts["recurring"]:
                async for job in _listed(services, counts["name"]):
                    yield job
        offset += len(page)


async def recurring_page(
    services: Services, queue: str | None, offset: int, count: int
) -> list[RecurringJob]:
    """Return some recurring jobs of a queue; without one, those that no queue lists."""
    page = await services.store.recurring(queue=queue, offset=offset, count=count)
    return [RecurringJob(services, record) for record in page]


async def _listed(services: Services, queue: str | None) -> AsyncIterator[RecurringJob]:
    offset = 0
    while page := await recurring_page(services, queue, offset, PAGE):
        for job in page:
            yield job
        offset += PAGE
