"""Fields of job hashes as columns.

A column is parsed as a whole, which is faster than value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.client.job.decoding import decode_texts

Stored: TypeAlias = Sequence[bytes | None]

TIME = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("element", pa.string()))
FAILURE = pa.struct(
    {"group": pa.string(), "message": pa.string(), "when": TIME, "worker": pa.string()}
)


def parse_texts(values: Stored) -> pa.Array:
    """Return strings; bytes that aren't UTF-8 are replaced."""
    stored = pa.array(values, pa.binary())
    try:
        return stored.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if value is None else value.decode("utf-8", "replace") for value in values],
            pa.string(),
        )


def parse_optional_texts(values: Stored) -> pa.Array:
    """Return strings, null where they are empty."""
    found = parse_texts(values)
    return pc.if_else(pc.equal(found, ""), None, found)


def parse_numbers(values: Stored) -> pa.Array:
    """Return floating-point numbers, null where there is none."""
    found = parse_optional_texts(values)
    try:
        return found.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_parse_number(value) for value in values], pa.float64())


def parse_integers(values: Stored) -> pa.Array:
    """Return integers, null where there is no number."""
    return pc.floor(parse_numbers(values)).cast(pa.int64(), safe=False)


def parse_times(values: Stored) -> pa.Array:
    """Return timestamps of seconds since the epoch, null for 0."""
    seconds = parse_numbers(values)
    micros = pc.round(pc.multiply(pc.if_else(pc.equal(seconds, 0.0), None, seconds), 1e6))
    return micros.cast(pa.int64(), safe=False).cast(TIME)


def parse_priorities(values: Stored) -> pa.Array:
    """Return priorities as callers give them: lower runs sooner. Redis stores the opposite."""
    return pc.add(pc.negate(pc.coalesce(parse_numbers(values), 0.0)), 0.0)  # no -0.0


def parse_lists(values: Stored) -> pa.Array:
    """Return lists of strings, empty where there is none."""
    known: dict[bytes | None, list[str]] = {}
    offsets, items = [0], list[str]()
    for value in values:
        found = known.get(value)
        if found is None:
            found = known[value] = _parse_list(value)
        if found:
            items += found
        offsets.append(len(items))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(items, pa.string()), type=TEXTS
    )


def parse_failures(values: Stored) -> pa.Array:
    """Return failures as structs, null where there is none."""
    return pa.array([_parse_failure(value) for value in values], FAILURE)


Parse: TypeAlias = Callable[[Stored], pa.Array]

# Column: the field of the job's hash, the type, and the function that parses it.
COLUMNS: dict[str, tuple[str, pa.DataType, Parse]] = {
    "jid": ("jid", pa.string(), parse_texts),
    "klass": ("klass", pa.string(), parse_texts),
    "queue": ("queue", pa.string(), parse_texts),
    "state": ("state", pa.string(), parse_texts),
    "priority": ("priority", pa.float64(), parse_priorities),
    "tags": ("tags", TEXTS, parse_lists),
    "data": ("data", pa.string(), parse_texts),
    "worker": ("worker", pa.string(), parse_optional_texts),
    "retries": ("retries", pa.int64(), parse_integers),
    "remaining": ("remaining", pa.int64(), parse_integers),
    "expires": ("expires", TIME, parse_times),
    "time": ("time", TIME, parse_times),
    "failure": ("failure", FAILURE, parse_failures),
    "spawned_from": ("spawned_from_jid", pa.string(), parse_optional_texts),
    "depends": ("x-after", TEXTS, parse_lists),
    "fence": ("x-fence", pa.int64(), parse_integers),
}
SCHEMA = pa.schema({name: kind for name, (_, kind, _) in COLUMNS.items()})


def fields_of(schema: pa.Schema) -> list[str]:
    """Return the fields of a job's hash to read: first `jid`, which only a job has."""
    return ["jid", *(COLUMNS[name][0] for name in schema.names)]


def batch_of(stored: Sequence[Sequence[bytes | None]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of the jobs that exist, of the values of `fields_of`."""
    columns = list(zip(*[job for job in stored if job[0] is not None], strict=True)) or [()] * (
        len(schema) + 1
    )
    batch: pa.RecordBatch = pa.RecordBatch.from_arrays(
        [COLUMNS[name][2](column) for name, column in zip(schema.names, columns[1:], strict=True)],
        schema=schema,
    )
    return batch


def _parse_number(value: bytes | None) -> float | None:
    try:
        return float(value) if value else None
    except ValueError:
        return None


def _parse_list(value: bytes | None) -> list[str]:
    if not value or value in (b"[]", b"{}"):
        return []
    try:
        found = msgspec.json.decode(value)
    except (ValueError, UnicodeDecodeError):
        return []
    return decode_texts(found) if isinstance(found, list) else []


def _parse_failure(value: bytes | None) -> dict[str, Any] | None:
    if not value or value == b"{}":
        return None
    try:
        failure = msgspec.json.decode(value)
    except (ValueError, UnicodeDecodeError):
        return None
    if not isinstance(failure, dict) or not (failure.get("group") or failure.get("type")):
        return None
    when = failure.get("when")
    micros = round(when * 1_000_000) if isinstance(when, int | float) else None
    texts = {name: str(failure.get(name) or "") for name in ("message", "worker")}
    return {"group": str(failure.get("group") or failure["type"]), "when": micros, **texts}
