"""Recurring jobs of the whole namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioqless.client.recurring import RecurringJob
from aioqless.store import Store

PAGE = 100


async def recurring_jobs(store: Store, max_data: int) -> AsyncIterator[RecurringJob]:
    """Those of no queue's turns, then those of each queue."""
    async for job in _listed(store, None, max_data):
        yield job
    offset = 0
    while page := await store.queues(offset=offset):
        for counts in page:
            if counts["recurring"]:
                async for job in _listed(store, counts["name"], max_data):
                    yield job
        offset += len(page)


async def recurring_page(
    store: Store, queue: str | None, offset: int, count: int, max_data: int
) -> list[RecurringJob]:
    """Return some recurring jobs of a queue; without one, those that no queue lists."""
    page = await store.recurring(queue=queue, offset=offset, count=count)
    return [RecurringJob(store, record, max_data=max_data) for record in page]


async def _listed(store: Store, queue: str | None, max_data: int) -> AsyncIterator[RecurringJob]:
    offset = 0
    while page := await recurring_page(store, queue, offset, PAGE, max_data):
        for job in page:
            yield job
        offset += PAGE
