"""What Redis keeps of a job, as Python values."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import Any, Self

import msgspec

from aioqless.lua import constant, row_fields

_FIELDS = """
jid klass state queue worker data priority retries remaining expires x-fence tags failure
spawned_from_jid x-context x-start-by
"""
_fields_of = itemgetter(*map(row_fields().index, _FIELDS.split()))
_RETRIES = constant("DEFAULT_RETRIES")


class JobState(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    DEPENDS = "depends"
    RUNNING = "running"
    STALLED = "stalled"
    FAILED = "failed"
    COMPLETE = "complete"

    @classmethod
    def _missing_(cls, value: object) -> JobState:
        """Keep a state that another client made up, for it to be shown."""
        state = str.__new__(cls, value)
        state._name_, state._value_ = "UNKNOWN", str(value)
        return state


def is_stalled(state: str, expires: float) -> bool:
    """Return whether a job of this state, with a lock until then, is stalled."""
    return state == JobState.STALLED or (state == JobState.RUNNING and 0 < expires < time.time())


@dataclass(frozen=True)
class Failure:
    """Why a job failed last: the kind of failure, what happened, when (seconds since 1970), and who
    ran it."""

    group: str
    message: str
    when: float
    worker: str


def meaning(message: str) -> str:
    """What a failure means that the job's handler knows nothing of, since its worker was lost;
    nothing for any other."""
    if message.startswith("Lost its lock "):
        return (
            "Each time its worker fell silent while it ran. It may kill its worker (out of memory, a crash in C code), "
            "or keep it from renewing the lock; the worker's own log may tell."
        )
    if message.startswith("Job exhausted retries "):
        return "It lost its worker again and again until no retry was left: it may kill or block its workers, or another job beside it did."
    return ""


@dataclass(frozen=True)
class Progress:
    """How far a run said to be: the `share` that is done, from 0 to 1, what it was doing, and when
    (seconds since 1970)."""

    share: float
    message: str
    when: float


def progress_of(record: Mapping[str, Any]) -> Progress | None:
    """The progress of a job's latest run: what an earlier one had done is done again."""
    told = record.get("progress")
    if not told or told.get("fence") not in (None, str(record["fence"])):
        return None
    try:
        return Progress(float(told["share"]), str(told["message"]), float(told["when"]))
    except (KeyError, ValueError):  # somebody else wrote it
        return None


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    """The limit that keeps a scheduled job from starting: the concurrency `limit` of a key, and the
    jids of up to 10 that run; or its `rate`, (n, seconds). It is looked at again `until` then, at
    the latest (seconds since 1970)."""

    key: str
    until: float
    limit: int | None = None
    running: tuple[str, ...] = ()
    rate: tuple[int, float] | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self | None:
        """Read it from a job's record; None for a job that isn't held back."""
        said = record.get("held_back")
        if not said:
            return None
        rate = (int(said["rate"][0]), float(said["rate"][1])) if said.get("rate") else None
        return cls(
            key=said["key"],
            until=said["until"],
            limit=said.get("limit"),
            running=tuple(said.get("running", ())),
            rate=rate,
        )

    @property
    def reason(self) -> str:
        """What the limit is, in words."""
        if self.limit is not None:
            return f"concurrency limit of key {self.key}: {self.limit:,} at a time"
        if self.rate is not None:
            return f"rate limit of key {self.key}: {self.rate[0]:,} in {self.rate[1]:g} s"
        return f"limit of key {self.key}"


@dataclass(frozen=True, kw_only=True)
class History:
    """What only a whole reading of a job has. Each list holds at most 1,000, with the total beside
    it.

    `events` are dicts with `when` (seconds since 1970; whole ones where another qless client wrote
    them), `what` and more, oldest first."""

    events: list[dict[str, Any]] = field(default_factory=list)
    events_total: int = 0
    dependencies: list[str] = field(default_factory=list)
    dependencies_total: int = 0
    dependents: list[str] = field(default_factory=list)
    dependents_total: int = 0


def stages(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events as stages: one for each time the job came into a queue, with the last time that each
    thing happened to it there."""
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
            case "handed-over":
                stage["worker"] = event.get("to")
            case "done" | "failed" as what:
                stage[what] = event["when"]
    return found


def history_of(record: Mapping[str, Any]) -> History:
    return History(
        events=list(record["history"]),
        events_total=record["history_total"],
        dependencies=list(record["dependencies"]),
        dependencies_total=record["dependencies_total"],
        dependents=list(record["dependents"]),
        dependents_total=record["dependents_total"],
    )


def record_of_row(row: Sequence[bytes | None]) -> dict[str, Any]:
    """Return the record of a popped job from its row, as `pop_many` returns it."""
    values = _fields_of(row)
    texts = [None if each is None else each.decode("utf-8", "surrogateescape") for each in values]
    jid, klass, state, queue, worker, data, priority, retries, remaining, *more = texts
    expires, fence, tags, failure, spawned_from, context, start_by = more
    whole = _number(retries, _RETRIES)
    return {
        "jid": jid,
        "klass": klass or "",
        "state": state,
        "queue": queue,
        "worker": worker,
        "data": data or "null",
        "priority": -_number(priority, 0) or 0,
        "retries": whole,
        "remaining": _number(remaining, whole),
        "expires": _number(expires, 0),
        "fence": _number(fence, 0),
        "tags": read_texts(_stored(tags, [])),
        "failure": _failure(failure),
        "spawned_from_jid": spawned_from,
        "context": _stored(context, {}),
        "start_by": _number(start_by, 0) or None,
        "tracked": False,
    }


def read_texts(values: Sequence[Any]) -> list[str]:
    """Read a list of texts as the scripts do: numbers that a peer has put into it count as texts,
    anything else is passed over."""
    known = (each for each in values if isinstance(each, str | float) or type(each) is int)
    return [each if isinstance(each, str) else f"{each:.14g}" for each in known]


def _failure(text: str | None) -> dict[str, Any]:
    stored = _stored(text, {})
    return (
        {name: stored.get(name, "") for name in ("group", "message", "when", "worker")}
        if stored
        else {}
    )


@lru_cache(1024)  # most jobs of a pop have the same numbers
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
        value = msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return default
    return value if isinstance(value, type(default)) else default
