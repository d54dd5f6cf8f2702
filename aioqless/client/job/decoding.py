"""Decodes what Redis keeps of a job: the row of a popped job, or its record in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from aioqless.client import job_data
from aioqless.client.codec import Codec
from aioqless.client.job.state import (
    Failure,
    FailureReason,
    HeldBack,
    JobDetails,
    JobState,
    Progress,
)
from aioqless.lua import constant
from aioqless.redis.encoding import Json, decode_text

_DEFAULT_RETRIES = constant("DEFAULT_RETRIES")
_EMPTY = (None, b"", b"[]", b"{}")  # lists and maps; Lua has one empty table for both
_NO_RARE_FIELDS = (None,) * 9

T = TypeVar("T", list[Any], dict[str, Any])


@dataclass(slots=True, eq=False)
class JobFields:
    """The fields of a job that the holder of its lock gets; `Job` and `StoredJob` describe them."""

    jid: str
    klass: str
    state: JobState
    queue: str
    worker: str
    raw_data: str
    priority: float
    retries: int
    remaining: int
    expires: float
    fence: int
    tags: list[str]
    failure: FailureReason | None
    spawned_from: str | None
    context: dict[str, str]
    expiry: float | None
    waited: float | None = None
    raw_cause: dict[str, str] | None = None  # of a Failure, its data perhaps encrypted
    is_called: bool = False  # another job has called it; known of popped jobs
    set_name: str | None = None  # of the job set that it is a member of; known of popped jobs
    constraints: str | None = None  # as the scripts store them
    bulk: str | None = None  # the jid of the job that it was popped together with
    _text: str | None = None  # the decrypted data, once it was read
    _cause: Failure | None = None  # once it was read

    def read_text(self, codec: Codec) -> str:
        """Return the data as JSON, decrypted if it is encrypted.

        Raises:
            DecryptionError: It can't be decrypted.
        """
        if self._text is None:
            self._text = codec.decode(self.raw_data, self.klass)
        return self._text

    def read_cause(self, codec: Codec) -> Failure | None:
        """Return the failure that the job was put for; None for other jobs.

        Raises:
            DecryptionError: The failed job's data can't be decrypted.
        """
        if self._cause is None and self.raw_cause:
            self._cause = decode_failure(codec, self.raw_cause)
        return self._cause

    def set_text(self, text: str) -> None:
        """Set the decrypted data, in which results of other jobs are filled in."""
        self._text = text

    def set_raw_data(self, raw_data: str) -> None:
        """Set the data that is stored now."""
        self.raw_data, self._text = raw_data, None


@dataclass(slots=True, eq=False, kw_only=True)
class RecordFields(JobFields):
    """The fields of a job's record; `JobRecord` describes them."""

    tracked: bool
    details: JobDetails
    held_back: HeldBack | None
    last_progress: Progress | None


def decode_row(row: Sequence[bytes | None], worker: str) -> JobFields:
    """Decode the row of a job that a worker popped.

    Other qless clients may have written parts of it. lib/facts/job_row.lua has the order of its
    fields.
    """
    jid, queue, priority, retries, remaining, tags, klass, data, expires, fence, *rare, waited = row
    failure, spawned_from, context, expiry, cause, parent, bulk, constraints, set_name = (
        rare or _NO_RARE_FIELDS
    )
    retry_limit = _decode_number(retries, _DEFAULT_RETRIES)
    return JobFields(
        decode_text(jid or b""),
        _decode_common(klass or b""),
        JobState.RUNNING,
        _decode_common(queue),
        worker,
        decode_text(data or b"null"),
        -_decode_number(priority, 0) or 0,
        retry_limit,
        _decode_number(remaining, retry_limit),
        _decode_number(expires, 0),
        _decode_number(fence, 0),
        [] if tags in _EMPTY else decode_texts(_decode_json(tags, [])),
        _decode_failure(failure) if failure else None,
        decode_text(spawned_from) if spawned_from else None,
        {} if context in _EMPTY else _decode_json(context, {}),
        (_decode_number(expiry, 0) or None) if expiry else None,
        waited=None if waited is None else _decode_number(waited, 0),
        raw_cause=json.loads(decode_text(cause)) if cause else None,
        is_called=parent is not None,
        set_name=decode_text(set_name) if set_name else None,
        bulk=decode_text(bulk) if bulk else None,
        constraints=decode_text(constraints) if constraints else None,
    )


def decode_record(record: Mapping[str, Json]) -> RecordFields:
    """Decode the record of a job."""
    failure = record["failure"]
    return RecordFields(
        jid=record["jid"],
        klass=record["klass"],
        state=JobState(record["state"]),
        queue=record["queue"],
        worker=record["worker"],
        raw_data=record["data"],
        priority=record["priority"],
        retries=record["retries"],
        remaining=record["remaining"],
        expires=record["expires"],
        fence=record["fence"],
        tags=list(record["tags"]),
        failure=_read_failure(failure) if failure else None,
        spawned_from=record["spawned_from_jid"] or None,
        context=record.get("context") or {},
        expiry=record.get("expiry"),
        tracked=record["tracked"],
        held_back=_decode_held_back(record.get("held_back")),
        last_progress=_decode_progress(record.get("progress"), record["fence"]),
        raw_cause=record.get("cause"),
        constraints=record.get("constraints"),
        details=JobDetails(
            events=list(record.get("history", ())),
            events_total=record.get("history_total", 0),
            dependencies=list(record.get("dependencies", ())),
            dependencies_total=record.get("dependencies_total", 0),
            dependents=list(record.get("dependents", ())),
            dependents_total=record.get("dependents_total", 0),
            after=list(record.get("after", ())),
            after_total=record.get("after_total", 0),
            branch=record.get("on_failure"),
            cause=record["cause"]["jid"] if record.get("cause") else None,
            failures_seen=record.get("failures", 0),
        ),
    )


def decode_failure(codec: Codec, stored: Mapping[str, str]) -> Failure:
    """Return a failure as Redis keeps it, with the failed job's data decrypted and decoded.

    Raises:
        DecryptionError: The data can't be decrypted.
    """
    data = job_data.decode(codec.decode(stored["data"], stored["klass"]))
    return Failure(stored["jid"], stored["klass"], stored["group"], stored["message"], data)


def decode_texts(values: Sequence[object]) -> list[str]:
    """Return the strings of a list as the scripts read it.

    Numbers, which another qless client may have put into it, become strings; anything else is left
    out.
    """
    known = (each for each in values if isinstance(each, str | float) or type(each) is int)
    return [each if isinstance(each, str) else f"{each:.14g}" for each in known]


# Most jobs of a pop have the same klass, queue, worker, state and numbers.
_decode_common = lru_cache(1024)(decode_text)


def _decode_failure(text: bytes) -> FailureReason | None:
    stored = _decode_json(text, {})
    return _read_failure(stored) if stored else None


def _read_failure(stored: Mapping[str, Any]) -> FailureReason:
    return FailureReason(*(stored.get(name, "") for name in ("group", "message", "when", "worker")))


def _decode_held_back(record: Mapping[str, Json] | None) -> HeldBack | None:
    if not record:
        return None
    rate = record.get("rate")
    lists = {name: tuple(record.get(name, ())) for name in ("running", "waits_for")}
    return HeldBack(**{**record, **lists, "rate": (int(rate[0]), float(rate[1])) if rate else None})


def _decode_progress(record: Mapping[str, str] | None, fence: int) -> Progress | None:
    """Return the progress of the latest run; a run starts without that of the one before."""
    if not record or record.get("fence") not in (None, str(fence)):
        return None
    try:
        return Progress(float(record["share"]), str(record["message"]), float(record["when"]))
    except (KeyError, ValueError):  # written by another program
        return None


@lru_cache(1024)
def _decode_number(text: bytes | None, default: int) -> Any:
    """Return a number, an int if it is whole; any number may stand where an int is expected."""
    try:
        number = float(text or default)
    except ValueError:
        return default
    return int(number) if number.is_integer() else number


def _decode_json(text: bytes, default: T) -> T:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return default
    return value if isinstance(value, type(default)) else default
