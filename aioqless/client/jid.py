"""Jid: the jid of a job that was put, and a handle to the job."""

from __future__ import annotations

from typing import Generic, Self, cast

from aioqless.client.job.backend import JobBackend
from aioqless.client.job.reading import read_job, read_position, wait_for_outcome
from aioqless.client.job.record import JobRecord
from aioqless.client.job.state import Position
from aioqless.client.new_job import Klass, Result_co
from aioqless.validation import Seconds


class Jid(str, Generic[Result_co]):
    """The jid of a job that was put: a string, and a handle to the job.

    Puts that type checkers know give a typed result: `thumb = await jid.result()`. A pickled or
    copied one is an ordinary `str`.
    """

    __slots__ = ("_backend", "_type")

    _backend: JobBackend
    _type: Klass[Result_co] | None

    def __new__(cls, jid: str, backend: JobBackend, type_: Klass[Result_co] | None = None) -> Self:
        """Make one; `put` does."""
        self = super().__new__(cls, jid)
        self._backend = backend
        self._type = type_
        return self

    async def job(self) -> JobRecord:
        """Read the record of the job.

        Raises:
            NoSuchJob: It was canceled, or is kept no longer.
        """
        return JobRecord(self._backend, await read_job(self._backend, self))

    async def result(self, timeout: Seconds | None = None) -> Result_co:
        """Wait for the end of the job, and return its handler's result.

        It is of the type that the handler's function returns: a dataclass, a pydantic model, ...

        Args:
            timeout: Time to wait at most.

        Raises:
            JobFailed: It failed.
            NoResult: Its handler keeps no results: `@job(result_ttl=...)`.
            InvalidData: The result isn't of the handler's type.
            TimeoutError: It has not ended in time.
            NoSuchJob: It was canceled.
        """
        value = await wait_for_outcome(self._backend, self, timeout)
        return cast(Result_co, value) if self._type is None else self._type.read_result(value)

    async def position(self) -> Position | None:
        """Return the job's place in its queue; None if it doesn't wait."""
        return await read_position(self._backend, self)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)
