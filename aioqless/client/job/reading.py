"""A job as it was read: its fields, its data, and what happened to it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any, Generic, Literal, Self, TypeAlias, cast

from typing_extensions import TypeVar

from aioqless.client import json_data
from aioqless.client.job.record import (
    Failure,
    HeldBack,
    History,
    JobState,
    history_of,
    is_stalled,
    progress_of,
    stages,
)
from aioqless.client.job.services import Services
from aioqless.errors import AioqlessError, NoSuchJob
from aioqless.store import Store

Data = TypeVar("Data", default=Any)
Reason: TypeAlias = Literal[
    "lost", "shutdown", "timeout", "too late"
]  # lost: another has the job, or nobody; too late: to begin


class ReadJob(Generic[Data]):
    """What Redis said of a job. (Job, which is this with verbs, says what the fields are.)"""

    __slots__ = (
        "_as_read", "_data", "_history", "_opened", "_services", "context", "expires", "failure", "fence", "held_back", "jid", "klass",
        "priority", "progressed", "queue", "raw_data", "remaining", "retries", "settled", "spawned_from", "start_by", "state",
        "stopped", "tags", "tracked", "worker",
    )  # fmt: skip

    def __init__(self, services: Services, record: Mapping[str, Any]) -> None:
        self._services = services
        self._read(record)

    @property
    def _store(self) -> Store:
        return self._services.store

    @property
    def max_data(self) -> int:
        """The maximum size of its data, in bytes."""
        return self._services.max_data

    def _read(self, record: Mapping[str, Any]) -> None:
        self.jid: str = record["jid"]
        self.klass: str = record["klass"]
        self.queue: str = record["queue"]
        self.state = JobState(record["state"])
        self.worker: str = record["worker"]
        self.priority: float = record["priority"]
        self.tags: list[str] = list(record["tags"])
        self.retries: int = record["retries"]
        self.remaining: int = record["remaining"]
        self.expires: float = record["expires"]
        self.tracked: bool = record["tracked"]
        self.failure = Failure(**record["failure"]) if record["failure"] else None
        self.spawned_from: str | None = record["spawned_from_jid"] or None
        self.fence: int = record["fence"]
        self.start_by: float | None = record.get("start_by")
        self.context: dict[str, str] = record.get("context") or {}
        self.held_back = HeldBack.of(record)  # by which limit; None for any other job
        self.progressed = progress_of(record)  # how far its run says to be
        self.settled = (
            False  # whether the one who runs it has completed, failed, retried or released it
        )
        self.stopped: Reason | None = (
            None  # why the worker wants this run to end, in whatever it runs
        )
        self.raw_data: str = record["data"]  # as it is in Redis, byte for byte
        self._opened: str | None = None  # the text that is sealed in it
        self._data: Any = json_data.Unread
        self._as_read: bytes | None = None  # what a type of the handler's made of the text
        self._history: History | None = history_of(record) if "history" in record else None

    @property
    def data(self) -> Data:
        """The job's data; what is changed in it is stored when the job completes or by `heartbeat`.
        Raises InvalidData."""
        if self._data is json_data.Unread:
            self._data = json_data.decoded(self.text)
        return cast(Data, self._data)

    @data.setter
    def data(self, value: Data) -> None:
        self._data = value
        self._as_read = None

    def read_as(self, value: Data) -> None:
        """Let `data` be this reading of the stored text, by a type that the handler takes."""
        self._data = value
        self._as_read = json_data.shape(value)

    @property
    def text(self) -> str:
        """The data as JSON, out of their seal if they have one. Raises DecryptionError."""
        if self._opened is None:
            self._opened = self._services.codec.decode(self.raw_data, self.klass)
        return self._opened

    def changed_data(self) -> bytes | None:
        """The data to store, sealed, when they are not those that were read. Raises InvalidData.

        Keys that a type of the handler's doesn't know are other stages': they stay beside those it
        changed."""
        if self._data is json_data.Unread:
            return None
        shape = json_data.shape(self._data)
        if shape is not None and shape == (self._as_read or json_data.shape_of(self.text)):
            return None
        text = json_data.encoded(self._data, self.max_data)
        if self._as_read is not None:
            text = json_data.encoded(
                json_data.joined(self.text, self._as_read, text), self.max_data
            )
        return self._services.codec.encode(text, self.klass)

    def encoded_result(self, text: bytes) -> bytes:
        """The JSON of what its handler returned as it is kept, sealed where its client seals."""
        return self._services.codec.encode_result(text, self.jid)

    def raise_if_stopped(self) -> None:
        """End here if the worker wants this run to end: raises CancelledError, which on the loop is
        raised without asking. For code in threads and processes, which can't be interrupted; the
        job is handed back, or is no more this run's."""
        if self.stopped:
            raise asyncio.CancelledError(self.stopped)

    def detached(self) -> Self:
        """The same job without a connection to Redis and without keys, as it travels to another
        process. Raises DecryptionError."""
        other = copy.copy(self)
        other._opened = self.text
        other._services = Services.offline(self.max_data)
        return other

    @property
    def whole(self) -> History:
        """Events, dependencies and dependents with their totals."""
        if self._history is None:
            raise AioqlessError(
                f"job {self.jid} came without its history, to save time: `await job.refresh()` reads it"
            )
        return self._history

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened to the job: {when, what, ...}, oldest first. A handler's job has them after
        `refresh`."""
        return self.whole.events

    @property
    def history(self) -> list[dict[str, Any]]:
        """The stages the job went through, as the specification has them: {q, put, popped, worker,
        failed, done}."""
        return stages(self.whole.events)

    @property
    def last_queue(self) -> str:
        """The queue that it is in; of a complete job, the last that it was in."""
        stages_of = reversed(self.history) if not self.queue else ()
        return self.queue or next((str(each["q"]) for each in stages_of if each.get("q")), "")

    @property
    def is_stalled(self) -> bool:
        """Whether it runs and its lock has expired."""
        return is_stalled(self.state, self.expires)

    @property
    def dependencies(self) -> list[str]:
        """The jids it waits for, in no particular order."""
        return self.whole.dependencies

    @property
    def dependents(self) -> list[str]:
        """The jids that wait for it."""
        return self.whole.dependents

    async def refresh(self) -> Self:
        """Read the job again, history included. Raises NoSuchJob."""
        record = await self._store.get(jid=self.jid)
        if record is None:
            raise NoSuchJob("get", "NOJOB", {"jid": self.jid, "why": "there is no such job"})
        self._read(record)
        return self
