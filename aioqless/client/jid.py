"""Jid: the id of a job that was put, from which its typed result can be read."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, cast

from typing_extensions import TypeVar

from aioqless.client.job import Job
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import decode_record
from aioqless.client.job.job import wait_for_outcome
from aioqless.errors import NoSuchJob
from aioqless.validation import Seconds

Result_co = TypeVar("Result_co", covariant=True, default=Any)


class ResultType(Protocol[Result_co]):
    """What makes the value that a handler returned of its JSON."""

    def read_result(self, value: object) -> Result_co:
        """Return the result."""


class Jid(str, Generic[Result_co]):
    """The jid of a job that was put: a string, and a handle to the job.

    Puts that type checkers know give a typed result: `thumb = await jid.result()`. A pickled or
    copied one is an ordinary `str`.
    """

    __slots__ = ("_backend", "_type")

    _backend: JobBackend
    _type: ResultType[Result_co] | None

    def __new__(
        cls, jid: str, backend: JobBackend, type_: ResultType[Result_co] | None = None
    ) -> Self:
        """Make one; `put` does."""
        self = super().__new__(cls, jid)
        self._backend = backend
        self._type = type_
        return self

    async def job(self) -> Job:
        """Read the job.

        Raises:
            NoSuchJob: It was canceled, or is kept no longer.
        """
        record = await self._backend.store.get(jid=self)
        if record is None:
            raise NoSuchJob("get", "NOJOB", {"jid": self, "why": "there is no such job"})
        return Job(self._backend, decode_record(record))

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

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)
