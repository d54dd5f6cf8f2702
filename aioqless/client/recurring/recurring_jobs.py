"""RecurringJobs: the recurring jobs of a namespace, as `client.recurring`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioqless.client.job.backend import JobBackend
from aioqless.client.recurring.recurring_job import RecurringJob

PAGE = 100


class RecurringJobs:
    """The recurring jobs of a namespace, also those of other qless clients."""

    def __init__(self, backend: JobBackend) -> None:
        self._backend = backend
        self._store = backend.store

    async def get(self, jid: str) -> RecurringJob | None:
        """Return a recurring job; None if there is none.

        Args:
            jid: Jid of the recurring job.
        """
        record = await self._store.recur_get(jid=jid)
        return None if record is None else RecurringJob(self._backend, record)

    async def all(self) -> AsyncIterator[RecurringJob]:
        """Iterate over all recurring jobs.

        First the jobs with a cron expression, by when they are due, and all paused jobs; then the
        others, queue by queue. They are read a page at a time: a job that is put or moved meanwhile
        may be missing, or be returned twice.
        """
        async for job in self._iterate(None):
            yield job
        offset = 0
        while page := await self._store.queues(offset=offset):
            for counts in page:
                if counts["recurring"]:
                    async for job in self._iterate(counts["name"]):
                        yield job
            offset += len(page)

    async def page(
        self, queue: str | None = None, *, offset: int = 0, count: int = 25
    ) -> list[RecurringJob]:
        """Return some of the recurring jobs, by when they are due.

        Args:
            queue: Those with an interval that put into this queue; default: those with a cron
                expression, and all paused jobs.
            offset: Number of jobs to skip.
            count: Maximum number of jobs, at most 1,000.
        """
        page = await self._store.recurring(queue=queue, offset=offset, count=count)
        return [RecurringJob(self._backend, record) for record in page]

    async def _iterate(self, queue: str | None) -> AsyncIterator[RecurringJob]:
        offset = 0
        while page := await self.page(queue, offset=offset, count=PAGE):
            for job in page:
                yield job
            offset += PAGE
