"""Parses entries of the archive stream into typed records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

VERSION: Final = "1"
MAX_MICROS: Final = 1e17
ENDS: Final = frozenset({"complete", "advance", "fail", "cancel", "move"})

# Programs may have cut a message within a character. In a name, a replaced character would
# name something else.
_TEXTS_FOR_PEOPLE: Final = frozenset({b"message", b"data", b"history", b"runs"})
_TEXTS_DECODER = msgspec.json.Decoder(list[str])


class Unreadable(ValueError):
    """An entry of another program, or a damaged one; the message says what is wrong."""


class _StoredRun(msgspec.Struct, gc=False):
    """A run as the scripts write it."""

    ended: str
    how: str
    popped: str | None = None
    put: str | None = None
    worker: str | None = None
    fence: str | None = None
    group: str | None = None
    message: str | None = None
    due: str | None = None
    version: str | None = None


_RUNS_DECODER = msgspec.json.Decoder(list[_StoredRun])


class Run(msgspec.Struct, frozen=True, gc=False):
    """One run of a job. Times are in µs since 1970.

    Attributes:
        put: When the job was queued for this run.
        popped: When it started.
        ended: When it ended.
        how: How it ended: retried, released, timed-out or lost; by a person also abandoned, skipped
            or handed-over. For the last run of a stage, what ended the stage.
        worker: Name of the worker.
        fence: Fencing token.
        group: Failure group, if it failed.
        message: Error message, if it failed.
        due: When a delay of the job or of its retry ended, if it had one.
        version: Version of the worker's code, if it is known.
    """

    put: int | None
    popped: int | None
    ended: int
    how: str
    worker: str | None
    fence: int | None
    group: str | None = None
    message: str | None = None
    due: int | None = None
    version: str | None = None


class Event(msgspec.Struct, frozen=True, gc=False):
    """The end of a job's stage in a queue. Times are in µs since 1970; None for unknown values.

    Attributes:
        id: Id of the entry.
        what: What ended the stage: complete, advance, fail, cancel or move.
        jid: Id of the job.
        klass: Name that selects its handler.
        queue: Queue of the stage.
        to: Queue that the job moved on to.
        was: Its state before.
        state: Its state after.
        priority: Its priority.
        tags: Its tags.
        worker: Name of the worker of the last run.
        put: When the job came into the stage. The `put` of a run is when it was queued for that
            run, from which statistics count how long it waited.
        popped: When the last run started.
        ended: When the stage ended.
        retries: Maximum number of retries.
        remaining: Number of retries that were left.
        fence: Fencing token of the last run.
        group: Failure group, if it failed.
        message: Error message, if it failed.
        spawned_from: Jid of the recurring job that it is an instance of.
        depends: Jids of jobs that it waited for.
        job_set: Name of the job set that it is a member of.
        tenant: Its key for fair turns.
        expires: When it expired unless it had started.
        due: When its last delay ended, if it had one.
        version: Version of the code of the last run, if it is known.
        actor: Who canceled it, if that is known: a user, a worker, or a name of `acting_as`.
        runs: All runs of the stage.
        data: The job's data, if it is archived.
        data_size: Length of the data, in bytes.
        swept: Whether a sweep added the entry, since another qless client ended the job, or the
            archive was off.
        history: The job's history, if it is archived.
    """

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
    job_set: str | None
    tenant: str | None
    expires: int | None
    due: int | None
    version: str | None
    actor: str | None
    runs: tuple[Run, ...]
    data: str | None
    data_size: int | None
    swept: bool
    history: str | None


def parse_raw(id: str, flat: Sequence[bytes]) -> Event:
    """Parse an entry as XRANGE returns it: names and values in turn.

    Raises:
        Unreadable: It is not an entry of the archive, or damaged.
    """
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
            name.decode(): value.decode(
                "utf-8", "replace" if name in _TEXTS_FOR_PEOPLE else "strict"
            )
            for name, value in zip(flat[::2], flat[1::2], strict=True)
        }
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error.object[:80]!r}") from None


def parse(id: str, fields: Mapping[str, str]) -> Event:
    """Parse an entry.

    Raises:
        Unreadable: It is not an entry of the archive, or damaged.
    """
    get = fields.get
    if get("v") != VERSION:
        raise Unreadable(f"its schema version is {get('v')!r}; this reader knows {VERSION!r}")
    for name in ("what", "jid", "klass", "queue", "ended"):
        if not get(name):
            raise Unreadable(f"it has no {name}")
    what, worker = fields["what"], get("worker") or None
    if what not in ENDS:
        raise Unreadable(f"what={what!r} is none of {', '.join(sorted(ENDS))}")
    put, popped, ended = (
        _read_time(fields, "put"),
        _read_time(fields, "popped"),
        _read_time(fields, "ended"),
    )
    assert ended is not None
    fence, group, message = _read_int(fields, "fence"), get("group"), get("message")
    due, version = _read_time(fields, "due"), get("version")
    runs = _read_runs(get("runs"))
    if popped is not None:
        last = Run(put, popped, ended, what, worker, fence, group, message, due, version)
        runs = (*runs, last)
    return Event(
        id=id,
        what=what,
        jid=fields["jid"],
        klass=fields["klass"],
        queue=fields["queue"],
        to=get("to"),
        was=get("was"),
        state=get("state"),
        priority=_read_number(fields, "priority") or 0.0,
        tags=_read_texts(fields, "tags"),
        worker=worker,
        put=runs[0].put if runs else put,
        popped=popped,
        ended=ended,
        retries=_read_int(fields, "retries"),
        remaining=_read_int(fields, "remaining"),
        fence=fence,
        group=group,
        message=message,
        spawned_from=get("spawned_from"),
        depends=_read_texts(fields, "depends"),
        job_set=get("job_set"),
        tenant=get("tenant"),
        expires=_read_time(fields, "expires"),
        due=due,
        version=version,
        actor=get("actor"),
        runs=runs,
        data=get("data"),
        data_size=_read_int(fields, "data_size"),
        swept=get("swept") == "1",
        history=get("history"),
    )


def to_micros(text: str) -> int:
    """Convert a decimal text of seconds since 1970 to µs.

    Raises:
        ValueError: It is not a time.
    """
    number = round(float(text) * 1e6)
    if not 0 <= number < MAX_MICROS:
        raise ValueError(text)
    return number


def _read_time(fields: Mapping[str, str], name: str) -> int | None:
    text = fields.get(name)
    if text is None:
        return None
    try:
        return to_micros(text)
    except (ValueError, OverflowError):
        raise Unreadable(f"{name}={text[:80]!r} is not a time") from None


def _read_number(fields: Mapping[str, str], name: str) -> float | None:
    text = fields.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise Unreadable(f"{name}={text[:80]!r} is not a number") from None


def _read_int(fields: Mapping[str, str], name: str) -> int | None:
    number = _read_number(fields, name)
    if number is None:
        return None
    if not abs(number) < 2**53:
        raise Unreadable(f"{name}={fields[name][:80]!r} is not an integer")
    return int(number)


def _read_texts(fields: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = fields.get(name)
    if not text:
        return ()
    texts: list[str] = _decode(_TEXTS_DECODER, name, text)
    return tuple(texts)


def _read_runs(text: str | None) -> tuple[Run, ...]:
    if not text:
        return ()
    try:
        return tuple(
            Run(
                put=to_micros(run.put) if run.put else None,
                popped=to_micros(run.popped) if run.popped else None,
                ended=to_micros(run.ended),
                how=run.how,
                worker=run.worker,
                fence=int(run.fence) if run.fence else None,
                group=run.group,
                message=run.message,
                due=to_micros(run.due) if run.due else None,
                version=run.version,
            )
            for run in _decode(_RUNS_DECODER, "runs", text)
        )
    except Unreadable:
        raise
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"runs has a time or number that is none: {error}") from None


def _decode(decoder: msgspec.json.Decoder[T], name: str, text: str) -> T:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"{name} can't be read: {error}") from None
