"""StoredJob: what a running job and the record of a job have in common."""

from __future__ import annotations

from typing import Any

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import JobFields
from aioqless.client.job.reading import read_dependency_failures, read_dependency_results
from aioqless.client.job.state import Failure, FailureReason, JobState


class StoredJob:
    """A job in Redis, as it was when it was read: a `Job` or a `JobRecord`."""

    __slots__ = ("_backend", "_fields")

    _fields: JobFields

    def __init__(self, backend: JobBackend, fields: JobFields) -> None:
        self._backend = backend
        self._fields = fields

    @property
    def jid(self) -> str:
        """Id of the job."""
        return self._fields.jid

    @property
    def klass(self) -> str:
        """Name that selects its handler."""
        return self._fields.klass

    @property
    def queue(self) -> str:
        """Name of its queue; empty for a complete job."""
        return self._fields.queue

    @property
    def state(self) -> JobState:
        """Where it is in its lifecycle."""
        return self._fields.state

    @property
    def worker(self) -> str:
        """Name of the worker that holds it; empty if none does."""
        return self._fields.worker

    @property
    def priority(self) -> float:
        """Lower runs sooner."""
        return self._fields.priority

    @property
    def tags(self) -> list[str]:
        """Tags to find it by."""
        return self._fields.tags

    @property
    def retries(self) -> int:
        """Maximum number of retries."""
        return self._fields.retries

    @property
    def remaining(self) -> int:
        """Number of retries that are left."""
        return self._fields.remaining

    @property
    def expires(self) -> float:
        """When its lock expires, in seconds since 1970 by Redis' clock; 0 without one."""
        return self._fields.expires

    @property
    def fence(self) -> int:
        """Fencing token, a number that rises with each pop.

        Pass it to storage of your own to reject writes of a run that lost its lock.
        """
        return self._fields.fence

    @property
    def failure(self) -> FailureReason | None:
        """Why it failed last; None if it never did."""
        return self._fields.failure

    @property
    def cause(self) -> Failure | None:
        """The failure that it was put for, by `on_failure`; None for other jobs.

        Raises:
            DecryptionError: The failed job's data can't be decrypted.
        """
        return self._fields.read_cause(self._backend.codec)

    @property
    def spawned_from(self) -> str | None:
        """Jid of the recurring job that it is an instance of, if it is one."""
        return self._fields.spawned_from

    @property
    def context(self) -> dict[str, str]:
        """Strings by name that travel with it, such as those of a trace."""
        return self._fields.context

    @property
    def expiry(self) -> float | None:
        """When it must have started, in seconds since 1970; later it fails."""
        return self._fields.expiry

    @property
    def raw_data(self) -> str:
        """The data as Redis has it, byte for byte, perhaps encrypted."""
        return self._fields.raw_data

    @property
    def text(self) -> str:
        """The data as JSON, decrypted if it is encrypted.

        Raises:
            DecryptionError: It can't be decrypted.
        """
        return self._fields.read_text(self._backend.codec)

    async def results(self) -> dict[str, Any]:
        """Return the results of the jobs that it was last put to depend on, by jid.

        Jobs whose handlers keep no results are left out.

        Raises:
            DecryptionError: A result can't be decrypted.
        """
        return (await read_dependency_results(self._backend, self.jid))[0]

    async def failures(self) -> dict[str, Failure]:
        """Return the failures among the jobs that it was last put to depend on, by jid.

        If one of them is held by a failed job, directly or through others, that one is included.

        Raises:
            DecryptionError: The data of a failed job can't be decrypted.
        """
        return await read_dependency_failures(self._backend, self.jid)

    async def tag(self, *tags: str) -> list[str]:
        """Add tags, and return all that the job has.

        Args:
            tags: Tags to find the job by.
        """
        self._fields.tags = await self._backend.store.tag_add(jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Remove tags, and return the tags that are left.

        Args:
            tags: Tags; the job need not have them.
        """
        self._fields.tags = await self._backend.store.tag_remove(jid=self.jid, tags=tags)
        return self.tags

    async def log(self, message: str, **fields: object) -> None:
        """Add an event of your own to the job's history.

        Args:
            message: What happened; cut after 16 KiB.
            fields: Any JSON values, which are stored with it.

        Raises:
            InvalidData: JSON has no such value.
        """
        data = job_data.encode(fields, self._backend.max_data) if fields else None
        text = validation.limit_message(message)
        await self._backend.store.log(jid=self.jid, message=text, data=data)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} {self.jid} {self.klass} {self.state} in {self.queue!r}>"
