"""What can happen, as a type for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias


@dataclass(frozen=True, kw_only=True)
class Put:
    """A job was put, anew or once more, or moved. What `unfail` puts back is not told."""

    kind: ClassVar[str] = "put"
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class Popped:
    """A tracked job was handed to a worker. Of other jobs this isn't told."""

    kind: ClassVar[str] = "popped"
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class Advanced:
    """A job was done with `queue`, and goes on in the queue `to`."""

    kind: ClassVar[str] = "advanced"
    when: float
    jid: str
    queue: str | None = None
    to: str | None = None


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A job is done."""

    kind: ClassVar[str] = "completed"
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A job was set aside as failed."""

    kind: ClassVar[str] = "failed"
    when: float
    jid: str
    queue: str | None = None
    worker: str | None = None
    group: str | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class Canceled:
    """A job was deleted; `worker` is who held it."""

    kind: ClassVar[str] = "canceled"
    when: float
    jid: str
    queue: str | None = None
    worker: str | None = None


@dataclass(frozen=True, kw_only=True)
class LockLost:
    """`worker` no longer holds the job: its lock expired, or somebody took the job from it."""

    kind: ClassVar[str] = "lock_lost"
    when: float
    jid: str
    queue: str | None = None
    worker: str | None = None


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """The lock of a tracked job expired. Of other jobs LockLost is told alone."""

    kind: ClassVar[str] = "stalled"
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class Progressed:
    """A run said how far it is: the share that is done, from 0 to 1, and what it does."""

    kind: ClassVar[str] = "progress"
    when: float
    jid: str
    queue: str | None = None
    progress: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """Somebody keeps an eye on the job from now on."""

    kind: ClassVar[str] = "track"
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class Untracked:
    """Nobody keeps an eye on the job any more."""

    kind: ClassVar[str] = "untrack"
    when: float
    jid: str
    queue: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConfigSet:
    """An option that all share was set."""

    kind: ClassVar[str] = "config_set"
    when: float
    option: str
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConfigUnset:
    """An option that all share has its default again."""

    kind: ClassVar[str] = "config_unset"
    when: float
    option: str


@dataclass(frozen=True, kw_only=True)
class Missed:
    """What happened from `since` to `until` wasn't heard, because of `why`: look at what you
    follow."""

    kind: ClassVar[str] = "missed"
    when: float
    since: float
    until: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Other:
    """What a later version or another program tells in the log, under its own `kind`."""

    kind: str
    when: float
    jid: str | None = None
    queue: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


JobEvent: TypeAlias = (
    Put | Popped | Advanced | Completed | Failed | Canceled | LockLost | Stalled | Progressed | Tracked | Untracked
)  # fmt: skip
AnyEvent: TypeAlias = JobEvent | ConfigSet | ConfigUnset | Missed | Other

_TYPES: dict[str, Any] = {
    each.kind: each
    for each in (
        Put, Popped, Advanced, Completed, Failed, Canceled, LockLost, Stalled, Progressed, Tracked, Untracked, ConfigSet, ConfigUnset,
    )
}  # fmt: skip
KINDS = (*_TYPES, Missed.kind)
_NEEDED = {
    kind: tuple(each.name for each in fields(of) if each.default is MISSING and each.name != "when")
    for kind, of in _TYPES.items()
}
_TOLD = {
    kind: tuple(each.name for each in fields(of) if each.name != "when")
    for kind, of in _TYPES.items()
}


def event_of(told: Mapping[str, Any], when: float) -> AnyEvent | None:
    """The event that a message tells; None for one that tells none. Peers tell of cancelled jobs
    that never were, with false for texts."""
    kind = told.get("event")
    if not isinstance(kind, str):
        return None
    if kind not in _TYPES:
        more = {
            name: value for name, value in told.items() if name not in ("event", "jid", "queue")
        }
        return Other(
            kind=kind,
            when=when,
            jid=_text(told.get("jid")),
            queue=_text(told.get("queue")),
            more=more,
        )
    values = {
        name: _number(told.get(name)) if name == "progress" else _text(told.get(name))
        for name in _TOLD[kind]
    }
    if any(values[name] is None for name in _NEEDED[kind]):
        return None
    event: AnyEvent = _TYPES[kind](when=when, **values)
    return event


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    try:
        return (
            float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        )
    except OverflowError:
        return None
