"""JobRecord: a job as it was read, and what an operator does with it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Self, TypedDict

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.actor import actor
from aioqless.client.constraints import encode_data_keys, with_data_keys
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import RecordFields
from aioqless.client.job.reading import read_job, read_result, wait_for_outcome
from aioqless.client.job.state import (
    ENDED,
    HeldBack,
    HistoryEvent,
    JobDetails,
    Progress,
    is_stalled,
    list_stages,
)
from aioqless.client.job.stored_job import StoredJob
from aioqless.client.put_options import Missing
from aioqless.hints import suggest_other_type
from aioqless.validation import Seconds


class DataUpdate(TypedDict):
    """The arguments by which a command gives a job other data."""

    data: bytes
    data_keys: bytes | None


@suggest_other_type("Job", "which a handler gets, and `queue.pop` returns")
class JobRecord(StoredJob):
    """A job as it was when it was read; `await record.refresh()` reads it again.

    `client.jobs` returns it, and so do lists and searches.
    """

    __slots__ = ("_data",)

    _fields: RecordFields

    def __init__(self, backend: JobBackend, fields: RecordFields) -> None:
        """Make a record of what Redis returned; `client.jobs.get` does."""
        super().__init__(backend, fields)
        self._data: Any = job_data.Unread

    @property
    def data(self) -> Any:
        """The job's data as it was read; `edit` changes that of the job, and so does `move`.

        Raises:
            InvalidData: It is not JSON.
        """
        if self._data is job_data.Unread:
            self._data = job_data.decode(self.text)
        return self._data

    @property
    def constraints(self) -> str | None:
        """Its unique key and its limits, as the scripts store them."""
        return self._fields.constraints

    @property
    def tracked(self) -> bool:
        """Whether its events are published one by one."""
        return self._fields.tracked

    @property
    def held_back(self) -> HeldBack | None:
        """The limit that keeps it from starting, if one does."""
        return self._fields.held_back

    @property
    def last_progress(self) -> Progress | None:
        """The latest progress that its run reported, if any."""
        return self._fields.last_progress

    @property
    def details(self) -> JobDetails:
        """Its events, and the jobs that it depends on, that depend on it, or that failures put."""
        return self._fields.details

    @property
    def events(self) -> list[HistoryEvent]:
        """What happened to the job, oldest first: dicts with `when`, `what` and more.

        A handler's job has them after `refresh`.
        """
        return self.details.events

    @property
    def history(self) -> list[HistoryEvent]:
        """The stages that the job went through, as other qless clients have them.

        Each is a dict of `q`, `put`, `popped`, `worker`, `failed` and `done`.
        """
        return list_stages(self.details.events)

    @property
    def dependencies(self) -> list[str]:
        """The jids of jobs that it waits for, in no particular order."""
        return self.details.dependencies

    @property
    def dependents(self) -> list[str]:
        """The jids of jobs that wait for it, in no particular order."""
        return self.details.dependents

    @property
    def last_queue(self) -> str:
        """The queue that it is in; for a complete job, the last that it was in."""
        stages = reversed(self.history) if not self.queue else ()
        return self.queue or next((str(stage["q"]) for stage in stages if stage.get("q")), "")

    @property
    def is_stalled(self) -> bool:
        """Whether it runs and its lock has expired."""
        return is_stalled(self.state, self.expires)

    async def refresh(self) -> Self:
        """Read the job again, and return it.

        Raises:
            NoSuchJob: It was canceled, or has expired.
        """
        self._load(await read_job(self._backend, self.jid))
        return self

    def _load(self, fields: RecordFields) -> None:
        self._fields, self._data = fields, job_data.Unread

    async def wait(self, timeout: Seconds | None = None) -> Self:
        """Wait until the job is complete or failed, and read it again.

        It is notified by events, without polling. A job that moves on to another queue, runs again
        or waits for its retry has not ended yet. In a handler this keeps a slot busy: let jobs
        depend on each other instead.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: It has not ended in time.
            NoSuchJob: It was canceled.
        """
        return await self._backend.watcher.wait_for_end(self.jid, self._read_end, timeout)

    async def follow(self) -> AsyncGenerator[Self, None]:
        """Yield the job now and whenever it has changed, until it is complete or failed.

        Example:
            async for now in record.follow():
                print(now.state, now.last_progress)

        It is notified by events. Changes that come faster than they are read are seen together. The
        start of a run is seen with its first progress.

        Raises:
            NoSuchJob: It was canceled.
        """
        watcher = self._backend.watcher
        async with aclosing(watcher.watch(self.jid, self.refresh, every_event=True)) as readings:
            async for record in readings:
                yield record
                if record.state in ENDED:
                    return

    async def outcome(self, timeout: Seconds | None = None) -> Any:
        """Wait for the end of the job, and return its handler's result.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            JobFailed: It failed.
            NoResult: Its handler keeps no results.
            TimeoutError: It has not ended in time.
            NoSuchJob: It was canceled.
        """
        return await wait_for_outcome(self._backend, self.jid, timeout)

    async def _read_end(self) -> Self | None:
        """Read the job again if it has ended; else return None, and leave it as it is."""
        found = await read_job(self._backend, self.jid)
        if found.state not in ENDED:
            return None
        self._load(found)
        return self

    async def result(self) -> Any:
        """Return the result of a complete job whose handler has `@job(result_ttl=seconds)`.

        Raises:
            JobFailed: It failed.
            NoResult: It is not complete, or no result is kept; `state` tells which.
            DecryptionError: The result can't be decrypted.
        """
        return await read_result(self._backend, self.jid)

    # Changes

    async def cancel(self) -> bool:
        """Delete the job.

        Returns:
            Whether it existed.

        Raises:
            HasDependents: A job that depends on it is not canceled.
        """
        return bool(await self._backend.store.cancel(jids=[self.jid], actor=actor.get()))

    async def move(
        self,
        queue: str,
        *,
        data: object = job_data.Unread,
        delay: Seconds = 0,
        priority: float | None = None,
        depends: Sequence[str] | None = None,
    ) -> None:
        """Put the job into another queue, whatever its state. A worker that runs it loses the lock.

        Args:
            queue: Name of the queue.
            data: New data; default: the data that the record has.
            delay: Seconds until it may run.
            priority: New priority; default: the one that it has.
            depends: Jids of jobs to wait for.
        """
        await self._backend.store.requeue(
            queue=validation.check_name("queue", queue),
            jid=self.jid,
            klass=self.klass,
            **self._update_for_move(data),
            delay=validation.check_seconds("delay", delay),
            priority=priority,
            depends=depends,
        )

    def _update_for_move(self, data: object) -> DataUpdate:
        """Return the data, and its keys: what is here may be older than the data in Redis."""
        if data is not job_data.Unread:
            return encode_update(self._backend, self, data)
        stored = self.raw_data.encode("utf-8", "surrogateescape")
        if self.constraints is None or '"fields":' not in self.constraints:
            return {"data": stored, "data_keys": None}
        return {"data": stored, "data_keys": encode_keys(self, _as_bytes(self.text))}

    async def edit(self, data: object) -> None:
        """Give the job other data; see `client.jobs.edit`.

        Args:
            data: The data.

        Raises:
            NoSuchJob: There is no such job any more.
            WrongState: It runs or is complete, or its data has changed since it was read.
            InvalidData: The data can't be encoded, or lacks a field that a key is made of.
        """
        update = encode_update(self._backend, self, data)
        await self._backend.store.edit(jid=self.jid, was=self.raw_data, **update)
        self._fields.set_raw_data(update["data"].decode("utf-8", "surrogateescape"))
        self._data = job_data.Unread

    async def fail(self, message: str, *, group: str | None = None) -> None:
        """Fail a job that does not run.

        Args:
            message: What went wrong; cut after 16 KiB.
            group: Failure group, such as "mail-SMTPError"; default: `<queue>-Fail`.

        Raises:
            LockLost: It runs: only the holder of its lock can fail it.
            WrongState: It is complete or failed.
        """
        group = group or validation.fit_name(f"{self.queue}-Fail")
        text = validation.limit_message(message)
        await self._backend.store.fail(jid=self.jid, worker="", group=group, message=text)

    async def unlock(self) -> None:
        """Take the job from its worker. It is next in its queue, before all others."""
        await self._backend.store.timeout(jids=[self.jid])

    async def depend(self, *jids: str, missing: Missing = "refuse") -> None:
        """Make the job wait for more jobs.

        Args:
            jids: Jids of the jobs.
            missing: What a job is that doesn't exist: "refuse", or "done".

        Raises:
            NoSuchJob: One doesn't exist; it may have been deleted after it had completed.
            WrongState: It does not wait for any job now.
        """
        await self._backend.store.depends_on(jid=self.jid, jids=jids, missing=missing)

    async def undepend(self, *jids: str) -> None:
        """Make the job no longer wait for some jobs.

        Args:
            jids: Jids of the jobs; none for all that it waits for.
        """
        await self._backend.store.depends_off(jid=self.jid, jids=jids or ["all"])

    async def set_priority(self, priority: float) -> None:
        """Set the priority.

        Args:
            priority: Lower runs sooner.
        """
        await self._backend.store.priority(jid=self.jid, priority=priority)
        self._fields.priority = priority

    async def track(self, *tags: str) -> None:
        """Track the job: its events are published one by one.

        Args:
            tags: Tags to add to the job.
        """
        await self._backend.store.track_track(jid=self.jid, tags=tags)

    async def untrack(self) -> None:
        """Stop tracking the job."""
        await self._backend.store.track_untrack(jid=self.jid)


def encode_update(backend: JobBackend, record: JobRecord, data: object) -> DataUpdate:
    """Return the arguments by which a command gives a job other data.

    Raises:
        InvalidData: The data can't be encoded, or lacks a field that a key is made of.
    """
    text = job_data.encode(data, backend.max_data)
    stored = backend.codec.encode(text, record.klass)
    return {"data": stored, "data_keys": encode_keys(record, text)}


def encode_keys(record: JobRecord, text: bytes) -> bytes | None:
    """Return what a job's keys and costs are made of other data, as the scripts take it.

    Args:
        record: The job.
        text: The data as JSON.

    Returns:
        None if none is made of data.

    Raises:
        InvalidData: The data lacks a field that a key is made of.
    """
    if record.constraints is None:
        return None
    before = partial(_read_fields, record)
    after = partial(job_data.decode_fields, text)
    return encode_data_keys(record.constraints, record.klass, before, after)


def encode_constraints_of_copy(record: JobRecord, text: bytes) -> bytes | None:
    """Return the constraints that a copy of a job has with other data, as put takes them.

    It is a member of no set or workflow, and no put of a debounced job.

    Args:
        record: The job.
        text: The data as JSON.

    Raises:
        InvalidData: The data lacks a field that a key is made of.
    """
    if record.constraints is None:
        return None
    own = with_data_keys(record.constraints, encode_keys(record, text))
    for name in ("set", "takes", "taken", "debounce", "debounce_max"):
        own.pop(name, None)
    return json.dumps(own).encode() if own else None


def _read_fields(record: JobRecord) -> Mapping[str, object]:
    return job_data.decode_fields(_as_bytes(record.text))


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
