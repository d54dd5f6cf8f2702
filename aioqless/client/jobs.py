"""Jobs: the jobs of a namespace by jid, state or tag, as `client.jobs`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar, overload

import msgspec

from aioqless import validation
from aioqless.client import extensions, job_data
from aioqless.client.actor import actor
from aioqless.client.job import JobRecord
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import decode_record
from aioqless.client.job.reading import read_job, read_position, read_result, wait_for_result
from aioqless.client.job.record import encode_update
from aioqless.client.job.state import ENDED, Output, Position, StoredStep
from aioqless.client.job.summaries import FailureGroup, JobSummary, SearchPage
from aioqless.client.new_job import Klass
from aioqless.errors import HasDependents, NoSuchJob, WrongState
from aioqless.validation import Seconds

R = TypeVar("R")

JOBS_PER_CALL, CALLS_PER_WRITE = 200, 50


class CancelResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `Jobs.cancel_many`.

    Attributes:
        canceled: Number of jobs that were deleted.
        kept: Jids of the jobs that stayed since a job that was not canceled depends on them.
    """

    canceled: int
    kept: tuple[str, ...]


class Jobs:
    """The jobs of a namespace."""

    def __init__(self, backend: JobBackend) -> None:
        self._backend = backend
        self._store = backend.store

    async def get(self, jid: str) -> JobRecord | None:
        """Return the record of a job; None if there is no such job.

        Args:
            jid: Jid of the job.
        """
        record = await self._store.get(jid=jid)
        return None if record is None else JobRecord(self._backend, decode_record(record))

    async def multiget(self, *jids: str) -> list[JobRecord]:
        """Return the records of the jobs that exist, in the order of the jids.

        Args:
            jids: Jids of the jobs, at most 1,000.
        """
        records = await self._store.multiget(jids=jids)
        return [JobRecord(self._backend, decode_record(record)) for record in records]

    async def wait(self, jid: str, timeout: Seconds | None = None) -> JobRecord:
        """Wait until a job is complete or failed, and return its record.

        Args:
            jid: Jid of the job.
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: It has not ended in time.
            NoSuchJob: There is no such job, or it was canceled.
        """

        async def read() -> JobRecord | None:
            record = JobRecord(self._backend, await read_job(self._backend, jid))
            return record if record.state in ENDED else None

        return await self._backend.watcher.wait_for_end(jid, read, timeout)

    @overload
    async def result(self, jid: str, *, timeout: Seconds | None = None) -> Any: ...
    @overload
    async def result(self, jid: str, handler: Klass[R], *, timeout: Seconds | None = None) -> R: ...
    async def result(
        self,
        jid: str,
        handler: Klass[Any] | None = None,
        *,
        timeout: Seconds | None = None,
    ) -> Any:
        """Return the result of a complete job whose handler has `@job(result_ttl=seconds)`.

        Args:
            jid: Jid of the job.
            handler: Its handler, to get the result in the type that the function returns.
            timeout: Seconds to wait at most for the end of the job; default: don't wait.

        Raises:
            JobFailed: It failed.
            NoResult: It is not complete, there is no such job, or no result is kept; `state` tells
                which.
            TimeoutError: It has not ended in time.
            InvalidData: The result isn't of the handler's type.
            DecryptionError: The result can't be decrypted.
        """
        if timeout is None:
            value = await read_result(self._backend, jid)
        else:
            value = await wait_for_result(self._backend, jid, timeout)
        return value if handler is None else handler.read_result(value)

    async def position(self, jid: str) -> Position | None:
        """Return the place of a waiting job in its queue; None if it doesn't wait.

        Args:
            jid: Jid of the job.
        """
        return await read_position(self._backend, jid)

    async def complete_jids(self, *, offset: int = 0, count: int = 25) -> list[str]:
        """Return the jids of complete jobs that are still kept, latest first.

        Args:
            offset: Number of jobs to skip.
            count: Maximum number of jobs, at most 1,000.
        """
        return await self._store.jobs(state="complete", offset=offset, count=count)

    async def failed_counts(self) -> dict[str, int]:
        """Return the number of failed jobs in each failure group."""
        counts: dict[str, int] = await self._store.failed()
        return counts

    async def failed_in(
        self, group: str, *, offset: int = 0, count: int = 25
    ) -> tuple[int, list[JobRecord]]:
        """Return the number of failed jobs in a group, and records of some, latest first.

        Args:
            group: Failure group.
            offset: Number of jobs to skip.
            count: Maximum number of jobs.

        Raises:
            ValueError: `group` is empty.
        """
        if not group:  # which the script takes for all groups
            raise ValueError("group must not be empty")
        page = await self._store.failed(group=group, offset=offset, count=count)
        jobs = [JobRecord(self._backend, decode_record(record)) for record in page["jobs"]]
        return page["total"], jobs

    async def failed_jids(self, group: str, *, offset: int = 0, count: int = 25) -> list[str]:
        """Return the jids of failed jobs in a group, latest first.

        Args:
            group: Failure group.
            offset: Number of jobs to skip.
            count: Maximum number of jobs, at most 1,000.
        """
        return await self._store.group(group=group, offset=offset, count=count)

    async def tracked(self) -> tuple[list[JobRecord], list[str]]:
        """Return the records of tracked jobs, and the jids of tracked jobs that no longer exist."""
        page = await self._store.track_list()
        jobs = [JobRecord(self._backend, decode_record(record)) for record in page["jobs"]]
        return jobs, page["expired"]

    async def track(self, jid: str, *tags: str) -> bool:
        """Track a job: its events are published one by one.

        Args:
            jid: Jid of the job.
            tags: Tags to add to it.

        Returns:
            Whether it was not tracked before.

        Raises:
            NoSuchJob: There is no such job.
        """
        return bool(await self._store.track_track(jid=jid, tags=tags))

    async def untrack(self, jid: str) -> bool:
        """Stop tracking a job, which may have been deleted.

        Args:
            jid: Jid of the job.

        Returns:
            Whether it was tracked.
        """
        return bool(await self._store.track_untrack(jid=jid))

    async def tagged_jids(
        self, tag: str, *, offset: int = 0, count: int = 25
    ) -> tuple[int, list[str]]:
        """Return the number of jobs that have a tag, and the jids of some, by when they got it.

        Args:
            tag: The tag.
            offset: Number of jobs to skip.
            count: Maximum number of jobs.
        """
        page = await self._store.tag_get(tag=tag, offset=offset, count=count)
        return page["total"], page["jobs"]

    async def tags(self, *, offset: int = 0, count: int = 100) -> list[str]:
        """Return the tags that at least two jobs have, the most frequent first.

        Args:
            offset: Number of tags to skip.
            count: Maximum number of tags.
        """
        tags: list[str] = await self._store.tag_top(offset=offset, count=count)
        return tags

    async def summaries(self, *jids: str) -> list[JobSummary]:
        """Return summaries of the jobs that exist, in the order of the jids.

        Args:
            jids: Jids of the jobs, at most 1,000.
        """
        return [JobSummary(**record) for record in await self._store.glances(jids=jids)]

    async def failure_groups(self, *groups: str) -> list[FailureGroup]:
        """Return summaries of failure groups.

        Args:
            groups: Failure groups, at most 100.
        """
        records = await self._store.failures(names=groups)
        return [FailureGroup.from_record(record) for record in records]

    async def search(
        self, filter: str, *, cursor: str = "", stop: str = "", count: int = 100
    ) -> SearchPage:
        """Search a bounded portion of the jobs; the next call continues behind it.

        A job that stays in its state during the whole search is found once. One that moves may be
        missed, or found again.

        Args:
            filter: What is searched for, such as `state:failed klass:app.mail age:<1h`.
            cursor: The cursor of the previous page; default: start.
            stop: A cursor at which the search ends.
            count: Maximum number of jobs to find, at most 1,000.

        Raises:
            ValueError: The filter or a cursor is malformed.
        """
        page: SearchPage = await extensions.load("job_filter").search(
            self._backend, filter, cursor=cursor, stop=stop, count=count
        )
        return page

    async def filter(
        self, filter: str, *, cursor: str = "", stop: str = "", count: int = 100
    ) -> AsyncGenerator[SearchPage, None]:
        """Iterate over the pages of a search until its end; see `search`."""
        while True:
            page = await self.search(filter, cursor=cursor, stop=stop, count=count)
            yield page
            if not (cursor := page.cursor):
                return

    async def retry(
        self,
        jid: str,
        *,
        data: object = job_data.Unread,
        was: JobRecord | None = None,
        from_step: str | None = None,
    ) -> None:
        """Put a failed job back into the queue that it failed in, with all its retries.

        Args:
            jid: Jid of the job.
            data: New data; default: the data that it has.
            was: The job as it was read before the change; if its data has changed since, the call
                is refused.
            from_step: Forget this step, and those that were stored after it; default: none.

        Raises:
            NoSuchJob: There is no such job.
            WrongState: It has not failed, or its data has changed.
            InvalidData: The data can't be encoded.
            InvalidArgument: No such step is stored.
        """
        if data is job_data.Unread:
            await self._store.revive_job(jid=jid, from_step=from_step)
            return
        record = was or JobRecord(self._backend, await read_job(self._backend, jid))
        await self._store.revive_job(
            jid=jid,
            from_step=from_step,
            was=record.raw_data if was else None,
            **encode_update(self._backend, record, data),
        )

    async def edit(self, jid: str, data: object) -> None:
        """Give a job other data, and the keys and costs that are made of it.

        Its state, when it is due, its expiry, priority, tags and limits stay as they are. While
        another job has the new unique key, it runs beside that one.

        Args:
            jid: Jid of the job.
            data: The data. `JobRecord.edit` also refuses to overwrite data that has changed.

        Raises:
            NoSuchJob: There is no such job.
            WrongState: It runs or is complete.
            InvalidData: The data can't be encoded, or lacks a field that a key is made of.
        """
        record = JobRecord(self._backend, await read_job(self._backend, jid))
        await self._store.edit(jid=jid, **encode_update(self._backend, record, data))

    async def steps(self, jid: str) -> list[StoredStep]:
        """Return what the runs of a job have stored for later runs, in this order.

        Args:
            jid: Jid of the job.

        Raises:
            DecryptionError: A value can't be decrypted.
        """
        steps: list[StoredStep] = await extensions.load("durable").read_steps(self._backend, jid)
        return steps

    def output(
        self,
        jid: str,
        *,
        after: str | None = None,
        latest: int | None = None,
        follow: bool = True,
    ) -> AsyncGenerator[Output, None]:
        """Iterate over the output of a job, what its runs emit, until the job has ended.

        Example:
            async for output in client.jobs.output(jid):
                match output:
                    case Emitted(value): ...
                    case Restarted(): ...  # another run begins: discard what came before

        All readers of a client share one subscription; none slows the job or another reader.

        Args:
            jid: Jid of the job.
            after: The id of the last item that was read; default: from the first value on.
            latest: Begin with this many entries, each of the values of 50 ms; default: with all.
            follow: Continue until the job has ended; else, until there is nothing more now.

        Yields:
            Emitted, Restarted, Missed, and at the end Ended.

        Raises:
            NoSuchJob: There is no such job.
            DecryptionError: A value can't be decrypted.
        """
        output: AsyncGenerator[Output, None] = extensions.load("output").read_output(
            self._backend, jid, after, latest=latest, follow=follow
        )
        return output

    async def signal(
        self, jid: str, name: str, value: object = None, *, replace: bool = False
    ) -> None:
        """Send a signal to a job, which gets it by `job.wait_for(name, ...)`, now or later.

        Args:
            jid: Jid of the job.
            name: Name of the signal.
            value: Its value, as the data of jobs.
            replace: Replace a former value that the job has not received yet, also one for which
                it failed.

        Raises:
            AlreadySignaled: It has a signal of this name.
            WrongState: It has ended, or no longer waits for the signal.
            NoSuchJob: There is no such job.
            InvalidData: The value can't be encoded.
        """
        await extensions.load("durable").send_signal(
            self._backend, jid, name, value, replace=replace
        )

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
            count = (await self.failed_counts()).get(group, 0)
        retried = 0
        while retried < count:
            portion = min(JOBS_PER_CALL, count - retried)
            if queue is None:
                moved = await self._store.revive_group(group=group, count=portion)
            else:
                moved = await self._store.unfail(queue=queue, group=group, count=portion)
            if not moved:
                break
            retried += int(moved)
            step(int(moved))
        return retried

    async def cancel(self, *jids: str) -> list[str]:
        """Delete jobs.

        Args:
            jids: Jids of the jobs.

        Returns:
            The jids of those that existed.

        Raises:
            HasDependents: A job depends on one of them and is not among them.
        """
        return await self._store.cancel(jids=jids, actor=actor.get())

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

    async def retry_many(
        self, jids: Sequence[str], *, step: Callable[[int], object] = lambda _: None
    ) -> int:
        """Retry those of the jobs that have failed, each in the queue that it failed in.

        Args:
            jids: Jids of the jobs.
            step: Called with the number of jobs that were dealt with, after each call.

        Returns:
            How many jobs were retried.
        """
        return await self._change_each(jids, lambda jid: self._store.revive_job(jid=jid), step)

    async def move_many(
        self,
        jids: Sequence[str],
        queue: str,
        *,
        step: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Put those of the jobs that wait or are scheduled into another queue.

        They are put in the order of the jids; scheduled ones stay due when they were.

        Args:
            jids: Jids of the jobs.
            queue: Name of the queue.
            step: Called with the number of jobs that were dealt with, after each call.

        Returns:
            How many jobs were moved.

        Raises:
            QueueFull: The queue, or Redis, has no room for more.
        """
        validation.check_name("queue", queue)
        return await self._change_each(
            jids, lambda jid: self._store.move(queue=queue, jid=jid), step
        )

    async def tag_many(self, jids: Sequence[str], *tags: str) -> int:
        """Add tags to those of the jobs that exist.

        Args:
            jids: Jids of the jobs.
            tags: The tags.

        Returns:
            How many jobs have the tags now.
        """
        return await self._change_each(jids, lambda jid: self._store.tag_add(jid=jid, tags=tags))

    async def untag_many(self, jids: Sequence[str], *tags: str) -> int:
        """Remove tags from those of the jobs that exist.

        Args:
            jids: Jids of the jobs.
            tags: The tags.

        Returns:
            How many jobs exist.
        """
        remove = self._store.tag_remove
        return await self._change_each(jids, lambda jid: remove(jid=jid, tags=tags))

    async def set_priority_many(self, jids: Sequence[str], priority: float) -> int:
        """Change the priority of those of the jobs that exist.

        Args:
            jids: Jids of the jobs.
            priority: Lower runs sooner.

        Returns:
            How many jobs have it now.
        """
        change = self._store.priority
        return await self._change_each(jids, lambda jid: change(jid=jid, priority=priority))

    async def unlock(self, *jids: str) -> None:
        """Take running jobs from their workers. They are next in their queues.

        Args:
            jids: Jids of the jobs.
        """
        await self._store.timeout(jids=jids)

    async def _change_each(
        self,
        jids: Sequence[str],
        change: Callable[[str], Awaitable[object]],
        step: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Call a command for each job, some in a write; return how many of them it changed."""
        count = 0
        for start in range(0, len(jids), CALLS_PER_WRITE):
            portion = jids[start : start + CALLS_PER_WRITE]
            for reply in await asyncio.gather(*map(change, portion), return_exceptions=True):
                if not isinstance(reply, BaseException):
                    count += reply if isinstance(reply, int) else 1
                elif not isinstance(reply, NoSuchJob | WrongState):
                    raise reply
            step(len(portion))
        return count

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
