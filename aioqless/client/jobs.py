"""Jobs, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aioqless.client import json_data
from aioqless.client.job import Job
from aioqless.client.job.services import Services
from aioqless.client.job.summaries import FailureGroup, Glance
from aioqless.client.recurring import RecurringJob
from aioqless.client.results import CancelResult
from aioqless.errors import HasDependents

JOBS_PER_CALL = 200


class Jobs:
    """Jobs by their jid, their state, their tags."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._store = services.store

    async def get(self, jid: str) -> Job | None:
        """The job; None when there is none."""
        record = await self._store.get(jid=jid)
        return None if record is None else self._job(record)

    async def multiget(self, *jids: str) -> list[Job]:
        """Those of the jobs that exist, in the order asked; at most 1,000 a call."""
        return [self._job(record) for record in await self._store.multiget(jids=jids)]

    async def wait(self, jid: str, timeout: float | None = None) -> Job:
        """Wait until a job is complete or failed; returns it as it is then. Raises TimeoutError and
        NoSuchJob, as `Job.wait` says."""
        await self._services.watcher.wait_for_end(jid, timeout)
        return self._job(await self._store.get(jid=jid))

    async def result(self, jid: str) -> Any:
        """What the handler of a complete job returned, if it keeps results. Raises NoResult and
        DecryptionError."""
        return self._services.codec.decode_result(await self._store.result(jid=jid), jid)

    async def recurring(self, jid: str) -> RecurringJob | None:
        """The recurring job; None when there is none."""
        record = await self._store.recur_get(jid=jid)
        return None if record is None else RecurringJob(self._services, record)

    async def complete(self, *, offset: int = 0, count: int = 25) -> list[str]:
        """The jids of completed jobs that are still kept, the latest first."""
        jids: list[str] = await self._store.jobs(state="complete", offset=offset, count=count)
        return jids

    async def failed(self) -> dict[str, int]:
        """How many jobs failed in each group."""
        counts: dict[str, int] = await self._store.failed()
        return counts

    async def failed_in(
        self, group: str, *, start: int = 0, limit: int = 25
    ) -> tuple[int, list[Job]]:
        """How many jobs failed in a group, and some of them, the latest first. Raises ValueError
        for a name without a letter."""
        if not group:  # which the script takes for all groups
            raise ValueError("group must not be empty")
        page = await self._store.failed(group=group, start=start, limit=limit)
        return page["total"], [self._job(record) for record in page["jobs"]]

    async def failed_jids(self, group: str, *, offset: int = 0, count: int = 25) -> list[str]:
        """The jids of some jobs that failed in a group, the latest first; at most 1,000 a call."""
        jids: list[str] = await self._store.group(group=group, offset=offset, count=count)
        return jids

    async def tracked(self) -> tuple[list[Job], list[str]]:
        """The tracked jobs, and the jids of those that are tracked but gone."""
        page = await self._store.track_list()
        return [self._job(record) for record in page["jobs"]], page["expired"]

    async def track(self, jid: str, *tags: str) -> bool:
        """Keep an eye on a job, and put tags on it; whether it wasn't tracked yet. Raises
        NoSuchJob."""
        return bool(await self._store.track_track(jid=jid, tags=tags))

    async def untrack(self, jid: str) -> bool:
        """Keep an eye on it no longer; whether it was tracked. It may be gone by now."""
        return bool(await self._store.track_untrack(jid=jid))

    async def tagged(self, tag: str, *, offset: int = 0, count: int = 25) -> tuple[int, list[str]]:
        """How many jobs have the tag, and the jids of some, by when they got it."""
        page = await self._store.tag_get(tag=tag, offset=offset, count=count)
        return page["total"], page["jobs"]

    async def tags(self, *, offset: int = 0, count: int = 100) -> list[str]:
        """The tags of two jobs or more, the commonest first."""
        tags: list[str] = await self._store.tag_top(offset=offset, count=count)
        return tags

    async def cancel(self, *jids: str) -> list[str]:
        """Delete jobs; returns the jids of those that were. Raises HasDependents when one that
        depends on them isn't named."""
        gone: list[str] = await self._store.cancel(jids=jids)
        return gone

    async def glances(self, *jids: str) -> list[Glance]:
        """What a list shows of jobs: those that exist, in the order asked, without their histories;
        at most 1,000 a call."""
        return [Glance(**record) for record in await self._store.glances(jids=jids)]

    async def failures(self, *groups: str) -> list[FailureGroup]:
        """Failure groups at a glance; at most 100 a call."""
        return [FailureGroup.of(record) for record in await self._store.failures(names=groups)]

    async def retry(
        self, jid: str, *, data: Any = json_data.Unread, was: Job | None = None
    ) -> None:
        """Let a failed job run again in the queue that it failed in, with other data if they are
        given. `was` is the job as it was read before they were changed: if its data are others by
        now, WrongState is raised and nothing is done. Raises NoSuchJob, too."""
        text = (
            None if data is json_data.Unread else json_data.encoded(data, self._services.max_data)
        )
        codec = self._services.codec
        if text is not None and codec.bound_to_klass and (job := await self.get(jid)):
            text = codec.encode(text, job.klass)
        await self._store.revive_job(jid=jid, data=text, was=was.raw_data if was else None)

    async def retry_group(
        self,
        group: str,
        count: int | None = None,
        *,
        queue: str | None = None,
        step: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Retry failed jobs of a group, the oldest first, in calls of a bounded size.

        Args:
            group: Failure group.
            count: Maximum number of jobs; default: as many as the group has now, so that jobs that
                fail again meanwhile are left.
            queue: Queue to put them into; default: the queue in which each of them failed.
            step: Called after each call with the number of jobs it retried.

        Returns:
            How many jobs were retried.
        """
        if count is None:
            count = (await self.failed()).get(group, 0)
        retried = 0
        while retried < count:
            portion = min(JOBS_PER_CALL, count - retried)
            if queue is None:
                moved = int(await self._store.revive_group(group=group, count=portion))
            else:
                moved = int(await self._store.unfail(queue=queue, group=group, count=portion))
            if not moved:
                break
            retried += moved
            step(moved)
        return retried

    async def cancel_many(
        self, jids: Sequence[str], *, step: Callable[[int], object] = lambda _: None
    ) -> CancelResult:
        """Delete jobs, except those on which a job depends that is not deleted.

        Args:
            jids: Jids of the jobs, in any order.
            step: Called with the number of jobs that were dealt with, after each call.

        Returns:
            How many were deleted, and which were kept. Complete jobs are neither.
        """
        canceled, kept = 0, list(jids)
        while kept:
            before, remaining, kept = canceled, kept, []
            for start in range(0, len(remaining), JOBS_PER_CALL):
                portion = remaining[start : start + JOBS_PER_CALL]
                count, held = await self._cancel_portion(portion)
                canceled += count
                kept += held
                step(len(portion) - len(held))
            if canceled == before:  # dependents in a later portion may have held earlier jobs
                break
        step(len(kept))
        return CancelResult(canceled=canceled, kept=tuple(kept))

    async def _cancel_portion(self, jids: Sequence[str]) -> tuple[int, list[str]]:
        """Delete as many of these as possible; return their number, and the jids that remain."""
        try:
            return len(await self.cancel(*jids)), []
        except HasDependents:
            if len(jids) == 1:
                return 0, list(jids)
        half = len(jids) // 2
        first, first_kept = await self._cancel_portion(jids[:half])
        second, second_kept = await self._cancel_portion(jids[half:])
        return first + second, first_kept + second_kept

    async def find(
        self, klass: str, *, cursor: str = "0", count: int = 1000
    ) -> tuple[str, list[str]]:
        """Search all jobs for a part of their klass, in any case, a portion of about `count` keys a
        call. Returns where to go on, "0" at the end, and the jids found. What is there all the time
        is found, perhaps twice."""
        step = await self._store.find(klass=klass, cursor=cursor, count=count)
        return step["cursor"], step["found"]

    async def timeout(self, *jids: str) -> None:
        """Take running jobs from their workers; they are next in line before all others."""
        await self._store.timeout(jids=jids)

    def _job(self, record: dict[str, Any]) -> Job:
        return Job(self._services, record)
