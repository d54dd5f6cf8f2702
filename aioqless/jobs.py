"""Job and RecurringJob: a record as it was read, and the verbs that change it in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Self, cast

import msgspec
from typing_extensions import TypeVar

from aioqless import data as data_
from aioqless.errors import AioqlessError, NoSuchJob
from aioqless.scripts import Scripts

Data = TypeVar("Data", default=Any)


class JobState(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    DEPENDS = "depends"
    RUNNING = "running"
    STALLED = "stalled"
    FAILED = "failed"
    COMPLETE = "complete"


@dataclass(frozen=True)
class Failure:
    """Why a job failed last: the kind of failure, what happened, when (seconds since 1970), and who ran it."""

    group: str
    message: str
    when: float
    worker: str


@dataclass(frozen=True, kw_only=True)
class History:
    """What only a whole reading of a job has. Each list holds at most 1,000, with the total beside it.

    `events` are dicts with `when` (whole seconds), `what` and more, oldest first.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    events_total: int = 0
    dependencies: list[str] = field(default_factory=list)
    dependencies_total: int = 0
    dependents: list[str] = field(default_factory=list)
    dependents_total: int = 0


class Job(Generic[Data]):
    """One job as it was when it was read; `await job.refresh()` reads it again.

    `priority` is lower for what runs sooner. `expires` is when the lock ends, in seconds since 1970 by Redis' clock, 0 when nobody
    holds it. `fence` rises with each pop: hand it to what you write to, to keep out a run that lost its lock.
    """

    __slots__ = (
        "_data", "_history", "_scripts", "_text", "expires", "failure", "fence", "jid", "klass", "max_data", "priority", "queue",
        "remaining", "retries", "settled", "spawned_from", "state", "tags", "tracked", "worker",
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
        self.settled = False  # whether the one who runs it has completed, failed, retried or released it
        self._text: str = record["data"]
        self._data: Any = msgspec.UNSET
        self._history: History | None = _history(record) if "history" in record else None

    @property
    def data(self) -> Data:
        """The job's data; what is changed in it is stored when the job completes or by `heartbeat`. Raises InvalidData."""
        if self._data is msgspec.UNSET:
            self._data = data_.decoded(self._text)
        return cast(Data, self._data)

    @data.setter
    def data(self, value: Data) -> None:
        self._data = value

    @property
    def raw_data(self) -> str:
        """The text of the data as it is in Redis, byte for byte."""
        return self._text

    def changed_data(self) -> bytes | None:
        """The data to store, when they are not those that were read."""
        if self._data is msgspec.UNSET:
            return None
        text = data_.encoded(self._data, self.max_data)
        unchanged = not isinstance(self._data, msgspec.Raw) and text == msgspec.json.encode(data_.decoded(self._text))
        return None if unchanged else text

    @property
    def _whole(self) -> History:
        if self._history is None:
            raise AioqlessError(f"job {self.jid} came without its history, to save time: `await job.refresh()` reads it")
        return self._history

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened to the job: {when, what, ...}, oldest first. A handler's job has them after `refresh`."""
        return self._whole.events

    @property
    def history(self) -> list[dict[str, Any]]:
        """The stages the job went through, as the specification has them: {q, put, popped, worker, failed, done}."""
        return stages(self._whole.events)

    @property
    def dependencies(self) -> list[str]:
        """The jids it waits for, in no particular order."""
        return self._whole.dependencies

    @property
    def dependents(self) -> list[str]:
        """The jids that wait for it."""
        return self._whole.dependents

    @property
    def whole(self) -> History:
        """Events, dependencies and dependents with their totals."""
        return self._whole

    async def refresh(self) -> Self:
        """Read the job again, history included. Raises NoSuchJob."""
        record = await self._scripts("get", jid=self.jid)
        if record is None:
            raise NoSuchJob("get", "NOJOB", {"jid": self.jid, "why": "there is no such job"})
        self._read(record)
        return self

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
            "requeue", queue=queue, jid=self.jid, klass=self.klass, data=text, delay=delay, priority=priority, depends=depends
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

    async def track(self, *tags: str) -> None:
        """Keep an eye on it: its events are published one by one. The tags are put on it as well."""
        await self._scripts("track", "track", jid=self.jid, tags=tags)

    async def untrack(self) -> None:
        """Publish its events no longer."""
        await self._scripts("track", "untrack", jid=self.jid)

    async def log(self, message: str, **more: Any) -> None:
        """Add an event of your own to its history; `more` is stored with it."""
        await self._scripts("log", jid=self.jid, message=message, data=msgspec.json.encode(more) if more else None)

    def __repr__(self) -> str:
        return f"<Job {self.jid} {self.klass} {self.state} in {self.queue!r}>"


class RecurringJob:
    """A template that puts a job whenever an interval has passed, as it was when it was read.

    `next` is when the next instance is due (seconds since 1970). `backlog` is how many missed instances are made up for; with
    `coalesce`, all that were missed give one.
    """

    __slots__ = (
        "_scripts", "backlog", "coalesce", "count", "interval", "jid", "klass", "next", "priority", "queue", "raw_data", "retries", "tags",
    )  # fmt: skip

    def __init__(self, scripts: Scripts, record: Mapping[str, Any]) -> None:
        self._scripts = scripts
        self._read(record)

    def _read(self, record: Mapping[str, Any]) -> None:
        self.jid: str = record["jid"]
        self.klass: str = record["klass"]
        self.queue: str = record["queue"]
        self.priority: float = record["priority"]
        self.interval: float = record["interval"]
        self.retries: int = record["retries"]
        self.count: int = record["count"]
        self.raw_data: str = record["data"]
        self.tags: list[str] = list(record["tags"])
        self.backlog: int = record["backlog"]
        self.coalesce: bool = record["coalesce"]
        self.next: float | None = record["next"]

    @property
    def data(self) -> Any:
        """The data of its instances. Raises InvalidData."""
        return data_.decoded(self.raw_data)

    async def refresh(self) -> Self:
        """Read it again. Raises NoSuchJob."""
        record = await self._scripts("recur", "get", jid=self.jid)
        if record is None:
            raise NoSuchJob("recur", "NOJOB", {"jid": self.jid, "why": "there is no such recurring job"})
        self._read(record)
        return self

    async def update(self, **changes: Any) -> None:
        """Change any of priority, retries, interval (seconds), data, klass, queue, backlog: all of them or, if one is refused, none."""
        if "data" in changes:
            changes["data"] = data_.encoded(changes["data"])
        await self._scripts("recur", "update", jid=self.jid, pairs=[part for change in changes.items() for part in change])
        await self.refresh()

    async def tag(self, *tags: str) -> list[str]:
        """Put tags on it and so on its coming instances; returns all it has."""
        self.tags = await self._scripts("recur", "tag", jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Take tags off it; returns those it still has."""
        self.tags = await self._scripts("recur", "untag", jid=self.jid, tags=tags)
        return self.tags

    async def cancel(self) -> None:
        """No more instances; those that were made stay."""
        await self._scripts("recur", "off", jid=self.jid)

    def __repr__(self) -> str:
        return f"<RecurringJob {self.jid} {self.klass} every {self.interval} s into {self.queue!r}>"


def stages(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events as stages: one for each time the job came into a queue, with the last time that each thing happened to it there."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event["what"] == "put" or not found:
            found.append({})
        stage = found[-1]
        match event["what"]:
            case "put":
                stage.update(q=event.get("q"), put=event["when"])
            case "popped":
                stage.update(popped=event["when"], worker=event.get("worker"))
            case "done" | "failed" as what:
                stage[what] = event["when"]
    return found


def _history(record: Mapping[str, Any]) -> History:
    return History(
        events=list(record["history"]),
        events_total=record["history_total"],
        dependencies=list(record["dependencies"]),
        dependencies_total=record["dependencies_total"],
        dependents=list(record["dependents"]),
        dependents_total=record["dependents_total"],
    )


_ROW = (
    "jid", "state", "worker", "klass", "queue", "data", "priority", "retries", "remaining", "expires", "tags", "failure",
    "spawned_from_jid", "fence",
)  # fmt: skip


def record_of_row(row: Sequence[bytes | None]) -> dict[str, Any]:
    """A job's record out of the plain fields that `pop_many` hands over."""
    texts = [None if value is None else value.decode("utf-8", "surrogateescape") for value in row]
    record: dict[str, Any] = dict(zip(_ROW, texts, strict=True))
    record["klass"] = record["klass"] or ""
    record["data"] = record["data"] or "null"
    record["priority"] = -_number(record["priority"], 0) or 0
    record["retries"] = _number(record["retries"], 5)
    record["remaining"] = _number(record["remaining"], record["retries"])
    record["expires"] = _number(record["expires"], 0)
    record["fence"] = _number(record["fence"], 0)
    record["tags"] = _stored(record["tags"], []) or []
    failure = _stored(record["failure"], {})
    record["failure"] = {name: failure.get(name, "") for name in ("group", "message", "when", "worker")} if failure else {}
    record["tracked"] = False
    return record


def _number(text: str | None, default: float) -> float:
    try:
        number = float(text or default)
    except ValueError:
        return default
    return int(number) if number.is_integer() else number


def _stored(text: str | None, default: Any) -> Any:
    if not text or text in ("{}", "[]"):
        return default
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except ValueError:
        return default
