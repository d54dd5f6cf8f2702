"""Recurring jobs of the whole namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioqless.client.job.session import Session
from aioqless.client.recurring import RecurringJob

PAGE = 100


async def recurring_jobs(session: Session) -> AsyncIterator[RecurringJob]:
    """Those of no queue's turns, then those of each queue."""
    async for job in _listed(session, None):
        yield job
    offset = 0
    while page := await session.store.queues(offset=offset):
        for counts in page:
            if counts["recurring"]:
                async for job in _listed(session, counts["name"]):
                    yield job
        offset += len(page)


async def recurring_page(
    session: Session, queue: str | None, offset: int, count: int
) -> list[RecurringJob]:
    """Return some recurring jobs of a queue; without one, those that no queue lists."""
    page = await session.store.recurring(queue=queue, offset=offset, count=count)
    return [RecurringJob(session, record) for record in page]


async def _listed(session: Session, queue: str | None) -> AsyncIterator[RecurringJob]:
    offset = 0
    while page := await recurring_page(session, queue, offset, PAGE):
        for job in page:
            yield job
        offset += PAGE
