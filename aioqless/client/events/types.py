"""The events: a type for each kind, and how a message is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

from aioqless.client.job_data import Json


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """Something that happened to a job: `when`, in seconds since 1970, and in which queue."""

    kind: ClassVar[str]
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class Put(JobEvent):
    """A job was put or moved. Jobs that `unfail` puts back have no such event."""

    kind: ClassVar[str] = "put"


@dataclass(frozen=True, kw_only=True)
class Popped(JobEvent):
    """A tracked job was popped by a worker. Other jobs have no such event."""

    kind: ClassVar[str] = "popped"


@dataclass(frozen=True, kw_only=True)
class Advanced(JobEvent):
    """A job was completed in `queue` and moved on to the queue `to`."""

    kind: ClassVar[str] = "advanced"
    to: str | None = None


@dataclass(frozen=True, kw_only=True)
class Completed(JobEvent):
    """A job was completed."""

    kind: ClassVar[str] = "completed"


@dataclass(frozen=True, kw_only=True)
class Failed(JobEvent):
    """A job failed."""

    kind: ClassVar[str] = "failed"
    worker: str | None = None
    group: str | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class Canceled(JobEvent):
    """A job was deleted, which `worker` held if it ran."""

    kind: ClassVar[str] = "canceled"
    worker: str | None = None


@dataclass(frozen=True, kw_only=True)
class LockLost(JobEvent):
    """`worker` no longer holds the job: its lock expired, or the job was taken from it."""

    kind: ClassVar[str] = "lock_lost"
    worker: str | None = None


@dataclass(frozen=True, kw_only=True)
class Stalled(JobEvent):
    """The lock of a tracked job expired. Other jobs have LockLost only."""

    kind: ClassVar[str] = "stalled"


@dataclass(frozen=True, kw_only=True)
class Progressed(JobEvent):
    """A run reported progress: the share that is done, from 0 to 1, and what is being done."""

    kind: ClassVar[str] = "progress"
    progress: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tracked(JobEvent):
    """A job is tracked from now on."""

    kind: ClassVar[str] = "track"


@dataclass(frozen=True, kw_only=True)
class Untracked(JobEvent):
    """A job is no longer tracked."""

    kind: ClassVar[str] = "untrack"


@dataclass(frozen=True, kw_only=True)
class ConfigSet:
    """An option of the shared configuration was set."""

    kind: ClassVar[str] = "config_set"
    when: float
    option: str
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConfigUnset:
    """An option of the shared configuration has its default again."""

    kind: ClassVar[str] = "config_unset"
    when: float
    option: str


@dataclass(frozen=True, kw_only=True)
class Missed:
    """Events from `since` to `until` were missed because of `why`: read the jobs that matter."""

    kind: ClassVar[str] = "missed"
    when: float
    since: float
    until: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Other:
    """An event of a later version or another program, with its own `kind`."""

    kind: str
    when: float
    jid: str | None = None
    queue: str | None = None
    more: dict[str, Json] = field(default_factory=dict)


AnyEvent: TypeAlias = JobEvent | ConfigSet | ConfigUnset | Missed | Other

_TYPES: dict[str, type[JobEvent] | type[ConfigSet] | type[ConfigUnset]] = {
    **{each.kind: each for each in JobEvent.__subclasses__()},
    ConfigSet.kind: ConfigSet,
    ConfigUnset.kind: ConfigUnset,
}
KINDS = (*_TYPES, Missed.kind)
_FIELDS = {
    kind: [each for each in fields(type_) if each.name != "when"] for kind, type_ in _TYPES.items()
}


def parse_event(message: Mapping[str, Json], when: float) -> AnyEvent | None:
    """Return the event of a message; None if it has none.

    Other qless clients publish the cancelation of jobs that never existed, with false for texts.

    Args:
        message: The parsed message.
        when: When it arrived, in seconds since 1970.
    """
    kind = message.get("event")
    if not isinstance(kind, str):
        return None
    if kind not in _TYPES:
        more = {
            name: value for name, value in message.items() if name not in ("event", "jid", "queue")
        }
        jid, queue = _read_text(message.get("jid")), _read_text(message.get("queue"))
        return Other(kind=kind, when=when, jid=jid, queue=queue, more=more)
    values: dict[str, Any] = {}
    for field_ in _FIELDS[kind]:
        read = _read_number if field_.name == "progress" else _read_text
        value = read(message.get(field_.name))
        if value is None and field_.default is MISSING:
            return None
        values[field_.name] = value
    event: AnyEvent = _TYPES[kind](when=when, **values)
    return event


def _read_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _read_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
