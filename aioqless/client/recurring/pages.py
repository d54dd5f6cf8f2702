"""Lists recurring jobs, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioqless.client.job.backend import JobBackend
from aioqless.client.recurring.recurring_job import RecurringJob

PAGE = 100


async def iterate_recurring(backend: JobBackend) -> AsyncIterator[RecurringJob]:
    """Yield the recurring jobs that no queue lists, then those of each queue."""
    async for job in _iterate(backend, None):
        yield job
    offset = 0
    while page := await backend.store.queues(offset=offset):
        for counts in page:
            if counts["recurring"]:
                async for job in _iterate(backend, counts["name"]):
                    yield job
        offset += len(page)


async def recurring_page(
    backend: JobBackend, queue: str | None, offset: int, count: int
) -> list[RecurringJob]:
    """Return some recurring jobs of a queue; without one, those that no queue lists."""
    page = await backend.store.recurring(queue=queue, offset=offset, count=count)
    return [RecurringJob(backend, record) for record in page]


async def _iterate(backend: JobBackend, queue: str | None) -> AsyncIterator[RecurringJob]:
    offset = 0
    while page := await recurring_page(backend, queue, offset, PAGE):
        for job in page:
            yield job
        offset += PAGE
