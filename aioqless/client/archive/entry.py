"""One entry of the archive's stream as a typed record; what can't be read is refused with the
reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

VERSION: Final = "1"
ENDS: Final = frozenset({"complete", "advance", "fail", "cancel", "move"})

# What is for people to read may be cut anywhere by those who wrote it; a name that isn't what it
# says would be another's.
_FOR_PEOPLE: Final = frozenset({b"message", b"data", b"history", b"runs"})
_TEXTS = msgspec.json.Decoder(list[str])


class Unreadable(ValueError):
    """An entry that is none of ours, or was damaged; its text says what is wrong with it."""


class _Earlier(msgspec.Struct, gc=False):
    """A run as the scripts write it."""

    ended: str
    how: str
    popped: str | None = None
    put: str | None = None
    worker: str | None = None
    fence: str | None = None
    group: str | None = None
    message: str | None = None


_RUNS = msgspec.json.Decoder(list[_Earlier])


class Run(msgspec.Struct, frozen=True, gc=False):
    """One attempt: when it came in line, when it began and ended (µs since the epoch), and how.

    `how` is retried, released, timed-out or lost, and of a person's abandoned, skipped or
    handed-over; of the last run of a stage it is what ended the stage."""

    put: int | None
    popped: int | None
    ended: int
    how: str
    worker: str | None
    fence: int | None
    group: str | None = None
    message: str | None = None


class Event(msgspec.Struct, frozen=True, gc=False):
    """The end of a job's stage in a queue. Times are whole µs since the epoch; None is what isn't
    known, or isn't there.

    `put` is when the job came into the stage; a run's `put` is when it came in line for that run,
    which is what statistics of waits count from. `runs` has all runs of the stage, the last one
    too."""

    id: str
    what: str
    jid: str
    klass: str
    queue: str
    to: str | None
    was: str | None
    state: str | None
    priority: float
    tags: tuple[str, ...]
    worker: str | None
    put: int | None
    popped: int | None
    ended: int
    retries: int | None
    remaining: int | None
    fence: int | None
    group: str | None
    message: str | None
    spawned_from: str | None
    depends: tuple[str, ...]
    runs: tuple[Run, ...]
    data: str | None
    data_size: int | None
    swept: bool
    history: str | None


def parse_raw(id: str, flat: Sequence[bytes]) -> Event:
    """`parse` of an entry as XRANGE replies with it: names and values in turn."""
    if len(flat) % 2:
        raise Unreadable("it has a field without a value")
    pairs = zip(flat[::2], flat[1::2], strict=True)
    try:
        return parse(id, {name.decode(): value.decode() for name, value in pairs})
    except UnicodeDecodeError:
        return parse(id, _with_replacements(flat))


def _with_replacements(flat: Sequence[bytes]) -> dict[str, str]:
    try:
        return {
            name.decode(): value.decode("utf-8", "replace" if name in _FOR_PEOPLE else "strict")
            for name, value in zip(flat[::2], flat[1::2], strict=True)
        }
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error.object[:80]!r}") from None


def parse(id: str, fields: Mapping[str, str]) -> Event:
    """The record of an entry. Raises Unreadable with the reason: that is what it is put aside
    with."""
    get = fields.get
    if get("v") != VERSION:
        raise Unreadable(f"its schema version is {get('v')!r}; this reader knows {VERSION!r}")
    for name in ("what", "jid", "klass", "queue", "ended"):
        if not get(name):
            raise Unreadable(f"it has no {name}")
    what, worker = fields["what"], get("worker") or None
    if what not in ENDS:
        raise Unreadable(f"what={what!r} is none of {', '.join(sorted(ENDS))}")
    put, popped, ended = _time(fields, "put"), _time(fields, "popped"), _time(fields, "ended")
    assert ended is not None
    fence, group, message = _whole(fields, "fence"), get("group"), get("message")
    runs = _earlier(get("runs"))
    if popped is not None:
        runs = (*runs, Run(put, popped, ended, what, worker, fence, group, message))
    return Event(
        id, what, fields["jid"], fields["klass"], fields["queue"], get("to"), get("was"), get("state"),
        _number(fields, "priority") or 0.0, _texts(fields, "tags"), worker,
        runs[0].put if runs else put, popped, ended,
        _whole(fields, "retries"), _whole(fields, "remaining"), fence, group, message, get("spawned_from"), _texts(fields, "depends"), runs,
        get("data"), _whole(fields, "data_size"), get("swept") == "1", get("history"),
    )  # fmt: skip


def micros(text: str) -> int:
    """Seconds since the epoch, a decimal text, as whole µs. Raises ValueError."""
    number = round(float(text) * 1e6)
    if not 0 <= number < 1e17:
        raise ValueError(text)
    return number


def _time(fields: Mapping[str, str], name: str) -> int | None:
    text = fields.get(name)
    if text is None:
        return None
    try:
        return micros(text)
    except (ValueError, OverflowError):
        raise Unreadable(f"{name}={text[:80]!r} is not a time") from None


def _number(fields: Mapping[str, str], name: str) -> float | None:
    text = fields.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise Unreadable(f"{name}={text[:80]!r} is not a number") from None


def _whole(fields: Mapping[str, str], name: str) -> int | None:
    number = _number(fields, name)
    if number is None:
        return None
    if not abs(number) < 2**53:
        raise Unreadable(f"{name}={fields[name][:80]!r} is not a whole number")
    return int(number)


def _texts(fields: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = fields.get(name)
    return tuple(_decoded(_TEXTS, name, text)) if text else ()


def _earlier(text: str | None) -> tuple[Run, ...]:
    if not text:
        return ()
    try:
        return tuple(
            Run(
                micros(run.put) if run.put else None, micros(run.popped) if run.popped else None, micros(run.ended), run.how, run.worker,
                int(run.fence) if run.fence else None, run.group, run.message,
            )
            for run in _decoded(_RUNS, "runs", text)
        )  # fmt: skip
    except (ValueError, OverflowError) as error:
        raise (
            error
            if isinstance(error, Unreadable)
            else Unreadable(f"runs has a time or number that is none: {error}")
        ) from None


def _decoded(decoder: msgspec.json.Decoder[Any], name: str, text: str) -> Any:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"{name} can't be read: {error}") from None
