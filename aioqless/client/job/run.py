"""JobRun: a job as the holder of its lock has it; the worker owns it, and handlers get a `Job`."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict

from aioqless.client import extensions, job_data
from aioqless.client.constraints import encode_data_keys, name_limit, with_data_keys
from aioqless.client.job.backend import JobBackend, OutputWriter, RunContext
from aioqless.client.job.decoding import JobFields
from aioqless.client.job.progress_reporter import Reporter
from aioqless.client.job.reading import find_failures, read_dependency_results
from aioqless.client.job.state import Failure, FailureReason, JobState
from aioqless.client.new_job import Klass
from aioqless.client.put_options import Limit
from aioqless.errors import InvalidData

StopReason: TypeAlias = Literal["lost", "shutdown", "timeout", "too late"]

_ANY_SIZE = 1 << 40
_EMPTY = b"{}"  # the shape of an empty object


class HeldLock(TypedDict):
    """The arguments by which the holder of a job proves its lock."""

    jid: str
    worker: str
    fence: int | None


class DataChanges(TypedDict):
    """The arguments by which a command stores what a run has made of the data."""

    data: bytes | None
    data_keys: bytes | None


class JobRun:
    """One run of a job: its lock, its data, its output, and what it has stored for later runs.

    A caller who pops a job has the same without a context and a handler.

    Args:
        backend: The collaborators of the job.
        fields: The job as it was popped.
        context: What the worker gives to its runs; None without a worker.
        handler: What handles the job; None if nothing does.
        output: What takes the output; default: Redis.

    Attributes:
        settled: Whether it was completed, failed, retried or released.
        stopped: Why the worker wants it to end; None while it may continue.
        task: The task of the handler's coroutine, while a worker runs it.
    """

    __slots__ = (
        *("backend", "context", "fields", "handler", "settled", "stopped", "task"),
        *("_data", "_durable", "_output", "_shape"),
    )

    def __init__(
        self,
        backend: JobBackend,
        fields: JobFields,
        context: RunContext | None = None,
        handler: Klass | None = None,
        output: OutputWriter | None = None,
    ) -> None:
        self.backend = backend
        self.fields = fields
        self.context = context
        self.handler = handler
        self.settled = False
        self.stopped: StopReason | None = None
        self.task: asyncio.Task[Any] | None = None
        self._output = output  # None until something is emitted
        self._durable: Any = None  # the steps, cursors and waits, if it uses any
        self._data: object = job_data.Unread
        self._shape: bytes | None = None  # of the value that a handler's type made of the text

    # The lock, and the end

    @property
    def held(self) -> HeldLock:
        """The arguments by which a command proves the lock."""
        fields = self.fields
        return {"jid": fields.jid, "worker": fields.worker, "fence": fields.fence or None}

    def renew_lock(self, expires: float) -> None:
        """Note when the lock expires after it was renewed."""
        self.fields.expires = expires

    def stop(self, reason: StopReason) -> None:
        """Note why it is to end."""
        self.stopped = reason

    def settle(self) -> None:
        """Note that its outcome is stored."""
        self.settled = True

    def show_end(
        self,
        state: JobState,
        failure: tuple[str, str] | None = None,
        remaining: int | None = None,
    ) -> None:
        """Let the job show how the run has ended.

        Args:
            state: The state of the job now.
            failure: The group and the message of what failed, if something did.
            remaining: The retries that are left, if that has changed.
        """
        self.fields.state = state
        if failure is not None:
            self.fields.failure = FailureReason(*failure, time.time(), self.fields.worker)
        if remaining is not None:
            self.fields.remaining = remaining

    # Data

    @property
    def text(self) -> str:
        """The data as JSON; raises DecryptionError if it can't be decrypted."""
        return self.fields.read_text(self.backend.codec)

    @property
    def cause(self) -> Failure | None:
        """The failure that the job was put for; raises DecryptionError for encrypted data."""
        return self.fields.read_cause(self.backend.codec)

    @property
    def max_data(self) -> int:
        """Maximum size of the data, in bytes."""
        return self.backend.max_data

    @property
    def data(self) -> object:
        """The data as the handler has it; raises InvalidData if it is not JSON."""
        if self._data is job_data.Unread:
            self._data = {} if self._shape == _EMPTY else job_data.decode(self.text)
        return self._data

    @data.setter
    def data(self, value: object) -> None:
        self._data = value
        self._shape = None

    def read_as(self, value: object) -> None:
        """Set the value that a handler's type made of the stored data; it counts as unchanged."""
        self._data = value
        self._shape = job_data.shape(value)

    def read_as_empty(self) -> None:
        """Let data that was put as none be an empty object, in which a handler can set keys."""
        self._shape = _EMPTY

    @property
    def changes(self) -> DataChanges:
        """The arguments by which a command stores the data; both None if it has not changed."""
        return {"data": self.changed_data(), "data_keys": self.changed_keys()}

    def changed_data(self) -> bytes | None:
        """Return the data in the form that is stored, or None if it has not changed.

        Keys that the handler's type does not know are kept.

        Raises:
            InvalidData: It can't be encoded.
        """
        text = self._changed_text()
        return None if text is None else self.backend.codec.encode(text, self.fields.klass)

    def changed_keys(self) -> bytes | None:
        """Return the job's keys and costs of the changed data, as the scripts take them.

        Returns:
            None if the data has not changed, or no key is made of it.

        Raises:
            InvalidData: The data can't be encoded, or lacks a field that a key is made of.
        """
        constraints = self.fields.constraints
        if constraints is None or (text := self._changed_text()) is None:
            return None
        after = partial(self._read_fields, text)
        return encode_data_keys(constraints, self.fields.klass, self._read_own_fields, after)

    def note_stored(self, changes: DataChanges) -> None:
        """Note that Redis has the changed data now."""
        data, keys = changes["data"], changes["data_keys"]
        if data is None:
            return
        if self.fields.constraints is not None and keys is not None:
            self.fields.constraints = json.dumps(with_data_keys(self.fields.constraints, keys))
        self.fields.set_raw_data(data.decode())
        self._shape = job_data.shape(self._data) if self._shape is not None else None

    def key_of(self, limit: Limit) -> str:
        """Return the key that a limit has for the job, as Redis has it.

        Raises:
            InvalidData: The data lacks a field of the key.
        """
        return name_limit(limit, self.fields.klass, self._read_own_fields)

    def _changed_text(self) -> bytes | None:
        if self._data is job_data.Unread:
            return None
        shape = job_data.shape(self._data)
        if shape is not None and shape == (self._shape or job_data.shape_of(self.text)):
            return None
        text = job_data.encode(self._data, self.max_data)
        if self._shape is not None:
            text = job_data.encode(job_data.merge(self.text, self._shape, text), self.max_data)
        return text

    def _read_fields(self, text: bytes) -> Mapping[str, object]:
        read = self.handler.values if self.handler else job_data.decode_fields
        return read(text)

    def _read_own_fields(self) -> Mapping[str, object]:
        return self._read_fields(self.text.encode("utf-8", "surrogateescape"))

    # Results

    def encode_result(self, text: bytes) -> bytes:
        """Return the JSON of a handler's result in the form in which it is stored."""
        return self.backend.codec.encode_result(text, self.fields.jid)

    async def fill_results(self) -> None:
        """Put the results that the job takes into the data that its handler gets.

        Raises:
            DecryptionError: A result can't be decrypted.
            InvalidData: A result is not there.
        """
        backend = self.backend
        results, takes = await read_dependency_results(backend, self.fields.jid)
        filling = {jid: results[jid] for jid in takes if jid in results}
        for jid in takes.keys() - filling.keys():
            failure = next(iter((await find_failures(backend, [jid])).values()), None)
            if failure is None and (await backend.store.states(jids=[jid]))[0]:
                raise InvalidData(f"the result of job {jid}, which it takes, is not there")
            failure = failure or Failure(jid, "", "canceled", "the job was canceled", None)
            filling[jid] = {job_data.FAILURE: dataclasses.asdict(failure)}
        if takes:
            filled = job_data.fill(job_data.decode(self.text), filling)
            self.fields.set_text(job_data.encode(filled, _ANY_SIZE).decode())

    # Output

    @property
    def output(self) -> OutputWriter:
        """What takes the output; raises AioqlessError if no worker runs the job."""
        if self._output is None:
            self._output = extensions.load("output").open_output(self)
        assert self._output is not None
        return self._output

    @property
    def has_output(self) -> bool:
        """Whether anything was emitted."""
        return self._output is not None

    async def flush_output(self) -> None:
        """Wait until all emitted values are sent."""
        if self._output is not None:
            await self._output.flush()

    # Steps, cursors and waits: aioqless.contrib.durable

    @property
    def durable(self) -> Any:
        """The steps, cursors and waits; raises AioqlessError if the run can't have any."""
        if self._durable is None:
            self._durable = extensions.load("durable").DurableRun(self)
        return self._durable

    @property
    def is_durable(self) -> bool:
        """Whether it has used steps, cursors or waits, or another job has called it."""
        return self._durable is not None or self.fields.is_called

    @property
    def parked(self) -> BaseException | None:
        """The `Parked` that ended it for a wait, also if the handler has caught it."""
        parked: BaseException | None = None if self._durable is None else self._durable.parked
        return parked

    def wake(self, name: str) -> None:
        """Note that something has come for which it may wait."""
        if self._durable is not None:
            self._durable.wake(name)

    def wake_all(self) -> None:
        """Note that messages to its worker may be lost."""
        if self._durable is not None:
            self._durable.wake_all()

    # Processes

    def detach(self) -> JobRun:
        """Return a copy without connection and keys, which can be sent to another process.

        Raises:
            DecryptionError: The data can't be decrypted.
        """
        _ = self.text, self.cause  # from now on the fields have them
        other = copy.copy(self)
        other.backend = JobBackend.offline(self.max_data)
        other.context = other.handler = other.task = None
        other._output = None  # noqa: SLF001  # of the same class
        return other

    def attach(self, output: OutputWriter, reporter: Reporter) -> None:
        """Set what takes the output and the progress in the other process."""
        self._output = output
        self.backend = dataclasses.replace(self.backend, progress_reporter=reporter)
