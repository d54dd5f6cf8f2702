"""Job: a record as it was read, and the verbs that change it in Redis."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, Self, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar

from aioqless import data as data_
from aioqless import names
from aioqless.errors import AioqlessError, NoSuchJob
from aioqless.following import Followed
from aioqless.record import Failure, History, history_of, progress_of, stages
from aioqless.scratch import Scratch
from aioqless.scripts import NoScripts, Scripts

Data = TypeVar("Data", default=Any)
Reason: TypeAlias = Literal["lost", "shutdown", "timeout"]  # lost: another has the job, or nobody


class Job(Followed, Generic[Data]):
    """One job as it was when it was read; `await job.refresh()` reads it again.

    `priority` is lower for what runs sooner. `expires` is when the lock ends, in seconds since 1970 by Redis' clock, 0 when nobody
    holds it. `fence` rises with each pop: hand it to what you write to, to keep out a run that lost its lock. `context` are texts that
    travel with it, such as those of a trace.
    """

    __slots__ = (
        "_as_read", "_data", "_history", "_scripts", "_text", "context", "expires", "failure", "fence", "jid", "klass", "max_data",
        "priority", "progressed", "queue", "remaining", "retries", "settled", "spawned_from", "state", "stopped", "tags", "tracked",
        "worker",
    )  # fmt: skip

    def __init__(self, scripts: Scripts, record: Mapping[str, Any], *, max_data: int = data_.LIMIT) -> None:
        self._scripts = scripts
        self.max_data = max_data
        self._read(record)

    def _read(self, record: Mapping[str, Any]) -> None:
        self.jid: str = record["jid"]
        self.klass: str = record["klass"]
        self.queue: str = record["queue"]
        self.state: str = record["state"]  # one of JobState
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
        self.context: dict[str, str] = record.get("context") or {}
        self.progressed = progress_of(record)  # how far its run says to be
        self.settled = False  # whether the one who runs it has completed, failed, retried or released it
        self.stopped: Reason | None = None  # why the worker wants this run to end, in whatever it runs
        self._text: str = record["data"]
        self._data: Any = msgspec.UNSET
        self._as_read: bytes | None = None  # what a type of the handler's made of the text
        self._history: History | None = history_of(record) if "history" in record else None

    @property
    def data(self) -> Data:
        """The job's data; what is changed in it is stored when the job completes or by `heartbeat`. Raises InvalidData."""
        if self._data is msgspec.UNSET:
            self._data = data_.decoded(self._text)
        return cast(Data, self._data)

    @data.setter
    def data(self, value: Data) -> None:
        self._data = value
        self._as_read = None

    def read_as(self, value: Data) -> None:
        """Let `data` be this reading of the stored text, by a type that the handler takes."""
        self._data = value
        self._as_read = data_.shape(value)

    @property
    def raw_data(self) -> str:
        """The text of the data as it is in Redis, byte for byte."""
        return self._text

    def changed_data(self) -> bytes | None:
        """The data to store, when they are not those that were read. Raises InvalidData.

        Keys that a type of the handler's doesn't know are other stages': they stay beside those it changed.
        """
        if self._data is msgspec.UNSET:
            return None
        if (shape := data_.shape(self._data)) is not None and shape == (self._as_read or data_.shape_of(self._text)):
            return None
        text = data_.encoded(self._data, self.max_data)
        return text if self._as_read is None else data_.encoded(data_.joined(self._text, self._as_read, text), self.max_data)

    def raise_if_stopped(self) -> None:
        """End here if the worker wants this run to end: raises CancelledError, which on the loop is raised without asking. For code in
        threads and processes, which can't be interrupted; the job is handed back, or is no more this run's."""
        if self.stopped:
            raise asyncio.CancelledError(self.stopped)

    def detached(self) -> Self:
        """The same job without a connection to Redis, as it travels to another process."""
        other = copy.copy(self)
        other._scripts = NoScripts()
        return other

    @property
    def whole(self) -> History:
        """Events, dependencies and dependents with their totals."""
        if self._history is None:
            raise AioqlessError(f"job {self.jid} came without its history, to save time: `await job.refresh()` reads it")
        return self._history

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened to the job: {when, what, ...}, oldest first. A handler's job has them after `refresh`."""
        return self.whole.events

    @property
    def history(self) -> list[dict[str, Any]]:
        """The stages the job went through, as the specification has them: {q, put, popped, worker, failed, done}."""
        return stages(self.whole.events)

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
        record = await self._scripts("get", jid=self.jid)
        if record is None:
            raise NoSuchJob("get", "NOJOB", {"jid": self.jid, "why": "there is no such job"})
        self._read(record)
        return self

    def scratch(self) -> Scratch:
        """A new directory: `with job.scratch() as path:` or `async with`. It is gone when the block is left, and so is what is in it."""
        return Scratch(self.jid)

    # The holder's verbs. Each raises LockLost when another run holds the job by now, WrongState when it doesn't run at all.

    @property
    def _held(self) -> dict[str, Any]:
        return {"jid": self.jid, "worker": self.worker, "fence": self.fence or None}

    async def heartbeat(self) -> float:
        """Keep the lock, and store the data if they were changed; returns when it now expires."""
        text = self.changed_data()
        self.expires = await self._scripts("heartbeat", **self._held, data=text)
        if text is not None:
            self._text = text.decode()
            self._as_read = data_.shape(self._data) if self._as_read is not None else None
        return self.expires

    async def complete(self, next: str | None = None, *, delay: float | None = None, depends: Sequence[str] | None = None) -> str:
        """End the job, or send it on to the queue `next`, after `delay` seconds or the jobs it `depends` on. Returns its state."""
        state: str = await self._scripts(
            "complete", **self._held, queue=self.queue, data=self.changed_data(), next=next, delay=delay, depends=depends
        )
        self.settled = True
        return state

    async def fail(self, group: str, message: str) -> None:
        """Set the job aside as failed, in the group of its kind of failure. A job that nobody runs may be failed by anybody."""
        await self._scripts("fail", **self._held, group=group, message=message, data=self.changed_data())
        self.settled = True

    async def retry(self, delay: float = 0, *, group: str | None = None, message: str | None = None) -> int:
        """Run it again, at the cost of a retry. Returns how many remain; below zero: there was none left, and it failed."""
        remaining: int = await self._scripts("retry", **self._held, queue=self.queue, delay=delay, group=group, message=message)
        self.settled = True
        return remaining

    async def release(self, delay: float = 0) -> str:
        """Hand it back to its place in the queue, at no cost of a retry. Returns its state."""
        state: str = await self._scripts("release", **self._held, delay=delay)
        self.settled = True
        return state

    # Anybody's verbs.

    async def cancel(self) -> bool:
        """Delete the job; whether there was anything to delete. Raises HasDependents."""
        return bool(await self._scripts("cancel", jids=[self.jid]))

    async def move(self, queue: str, *, delay: float = 0, priority: float | None = None, depends: Sequence[str] | None = None) -> None:
        """Put it into another queue, wherever it is now; whoever runs it loses the lock."""
        text = self.changed_data() or self._text
        await self._scripts(
            "requeue",
            queue=names.checked("queue", queue),
            jid=self.jid,
            klass=self.klass,
            data=text,
            delay=delay,
            priority=priority,
            depends=depends,
        )

    async def timeout(self) -> None:
        """Take it from its worker; it is next in line before all others."""
        await self._scripts("timeout", jids=[self.jid])

    async def depend(self, *jids: str) -> None:
        """Let it wait for more jobs. Raises WrongState unless it waits for some already."""
        await self._scripts("depends", "on", jid=self.jid, jids=jids)

    async def undepend(self, *jids: str) -> None:
        """Let it no longer wait for these jobs; without any, for none at all."""
        await self._scripts("depends", "off", jid=self.jid, jids=jids or ["all"])

    async def set_priority(self, priority: float) -> None:
        """Run it sooner (lower) or later than others."""
        await self._scripts("priority", jid=self.jid, priority=priority)
        self.priority = priority

    async def tag(self, *tags: str) -> list[str]:
        """Put tags on it; returns all it has."""
        self.tags = await self._scripts("tag", "add", jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Take tags off it; returns those it still has."""
        self.tags = await self._scripts("tag", "remove", jid=self.jid, tags=tags)
        return self.tags

    async def log(self, message: str, **more: Any) -> None:
        """Add an event of your own to its history; `more` is stored with it."""
        await self._scripts("log", jid=self.jid, message=message, data=msgspec.json.encode(more) if more else None)

    def __repr__(self) -> str:
        return f"<Job {self.jid} {self.klass} {self.state} in {self.queue!r}>"
