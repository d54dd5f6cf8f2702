"""Fields of job hashes as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from aioqless.client.job.decoding import decode_texts

TIME = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("element", pa.string()))
FAILURE = pa.struct(
    {"group": pa.string(), "message": pa.string(), "when": TIME, "worker": pa.string()}
)


def _parse_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _parse_name(value: bytes | None) -> str | None:
    return _parse_text(value or None)


def _parse_number(value: bytes | None) -> float | None:
    try:
        return float(value) if value else None
    except ValueError:
        return None


def _parse_integer(value: bytes | None) -> int | None:
    number = _parse_number(value)
    return None if number is None else math.floor(number)


def _parse_time(value: bytes | None) -> int | None:
    """Return microseconds of seconds since the epoch; None for 0."""
    number = _parse_number(value)
    return round(number * 1e6) if number else None


def _parse_priority(value: bytes | None) -> float:
    """Return a priority as callers give it: lower runs sooner. Redis stores the opposite."""
    return 0.0 - (_parse_number(value) or 0.0)


def _parse_json(value: bytes | None) -> Any:
    try:
        return msgspec.json.decode(value or b"null")
    except (ValueError, UnicodeDecodeError):
        return None


def _parse_list(value: bytes | None) -> list[str]:
    found = _parse_json(value)
    return decode_texts(found) if isinstance(found, list) else []


def _parse_failure(value: bytes | None) -> dict[str, Any] | None:
    failure = _parse_json(value)
    if not isinstance(failure, dict) or not (failure.get("group") or failure.get("type")):
        return None
    when = failure.get("when")
    micros = round(when * 1_000_000) if isinstance(when, int | float) else None
    texts = {name: str(failure.get(name) or "") for name in ("message", "worker")}
    return {"group": str(failure.get("group") or failure["type"]), "when": micros, **texts}


Parse: TypeAlias = Callable[[bytes | None], Any]

# Column: the field of the job's hash, the type, and the function that parses it.
COLUMNS: dict[str, tuple[str, pa.DataType, Parse]] = {
    "jid": ("jid", pa.string(), _parse_text),
    "klass": ("klass", pa.string(), _parse_text),
    "queue": ("queue", pa.string(), _parse_text),
    "state": ("state", pa.string(), _parse_text),
    "priority": ("priority", pa.float64(), _parse_priority),
    "tags": ("tags", TEXTS, _parse_list),
    "data": ("data", pa.string(), _parse_text),
    "worker": ("worker", pa.string(), _parse_name),
    "retries": ("retries", pa.int64(), _parse_integer),
    "remaining": ("remaining", pa.int64(), _parse_integer),
    "expires": ("expires", TIME, _parse_time),
    "time": ("time", TIME, _parse_time),
    "failure": ("failure", FAILURE, _parse_failure),
    "spawned_from": ("spawned_from_jid", pa.string(), _parse_name),
    "depends": ("x-after", TEXTS, _parse_list),
    "fence": ("x-fence", pa.int64(), _parse_integer),
}
SCHEMA = pa.schema({name: kind for name, (_, kind, _) in COLUMNS.items()})


def fields_of(schema: pa.Schema) -> list[str]:
    """Return the fields of a job's hash to read: first `jid`, which only a job has."""
    return ["jid", *(COLUMNS[name][0] for name in schema.names)]


def batch_of(stored: Sequence[Sequence[bytes | None]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of the jobs that exist, of the values of `fields_of`."""
    jobs = [job for job in stored if job[0] is not None]
    columns = [
        pa.array([COLUMNS[name][2](job[number]) for job in jobs], COLUMNS[name][1])
        for number, name in enumerate(schema.names, 1)
    ]
    batch: pa.RecordBatch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return batch
