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


async def _listed(store: Store, queue: str | None, max_data: int) -> AsyncIterator[RecurringJob]:
    offset = 0
    while page := await store.recurring(queue=queue, offset=offset, count=PAGE):
        for record in page:
            yield RecurringJob(store, record, max_data=max_data)
        offset += PAGE
