"""What Redis keeps of jobs as columns: whole columns at once, since that is what costs little."""

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


def texts(values: Stored) -> pa.Array:
    """Bytes that aren't UTF-8, which a careless client may have put, are replaced."""
    stored = pa.array(values, pa.binary())
    try:
        return stored.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if value is None else value.decode("utf-8", "replace") for value in values],
            pa.string(),
        )


def named(values: Stored) -> pa.Array:
    """A text that is stored empty where there is none."""
    found = texts(values)
    return pc.if_else(pc.equal(found, ""), None, found)


def numbers(values: Stored) -> pa.Array:
    found = named(values)
    try:
        return found.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number(value) for value in values], pa.float64())


def wholes(values: Stored) -> pa.Array:
    return pc.floor(numbers(values)).cast(pa.int64(), safe=False)


def times(values: Stored) -> pa.Array:
    """Seconds since 1970; 0 is none."""
    seconds = numbers(values)
    micros = pc.round(pc.multiply(pc.if_else(pc.equal(seconds, 0.0), None, seconds), 1e6))
    return micros.cast(pa.int64(), safe=False).cast(TIME)


def priorities(values: Stored) -> pa.Array:
    """Callers' are negative where a job runs sooner, stored ones positive; adding 0 makes 0 of
    -0."""
    return pc.add(pc.negate(pc.coalesce(numbers(values), 0.0)), 0.0)


def lists(values: Stored) -> pa.Array:
    known: dict[bytes | None, list[str]] = {}
    offsets, items = [0], list[str]()
    for value in values:
        found = known.get(value)
        if found is None:
            found = known[value] = _list(value)
        if found:
            items += found
        offsets.append(len(items))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(items, pa.string()), type=TEXTS
    )


def failures(values: Stored) -> pa.Array:
    return pa.array([_failure(value) for value in values], FAILURE)


Read: TypeAlias = Callable[[Stored], pa.Array]

# Each column with the field of a job's hash that it is read from, its type, and how.
COLUMNS: dict[str, tuple[str, pa.DataType, Read]] = {
    "jid": ("jid", pa.string(), texts),
    "klass": ("klass", pa.string(), texts),
    "queue": ("queue", pa.string(), texts),
    "state": ("state", pa.string(), texts),
    "priority": ("priority", pa.float64(), priorities),
    "tags": ("tags", TEXTS, lists),
    "data": ("data", pa.string(), texts),
    "worker": ("worker", pa.string(), named),
    "retries": ("retries", pa.int64(), wholes),
    "remaining": ("remaining", pa.int64(), wholes),
    "expires": ("expires", TIME, times),
    "time": ("time", TIME, times),
    "failure": ("failure", FAILURE, failures),
    "spawned_from": ("spawned_from_jid", pa.string(), named),
    "depends": ("x-after", TEXTS, lists),
    "fence": ("x-fence", pa.int64(), wholes),
}
SCHEMA = pa.schema({name: kind for name, (_, kind, _) in COLUMNS.items()})


def fields_of(schema: pa.Schema) -> list[str]:
    """What to ask a job's hash for; its jid always, which tells whether there is a job."""
    return ["jid", *(COLUMNS[name][0] for name in schema.names)]


def batch_of(stored: Sequence[Sequence[bytes | None]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of those jobs that there are."""
    columns = list(zip(*[job for job in stored if job[0] is not None], strict=True)) or [()] * (
        len(schema) + 1
    )
    made: pa.RecordBatch = pa.RecordBatch.from_arrays(
        [COLUMNS[name][2](column) for name, column in zip(schema.names, columns[1:], strict=True)],
        schema=schema,
    )
    return made


def _number(value: bytes | None) -> float | None:
    try:
        return float(value) if value else None
    except ValueError:
        return None


def _list(value: bytes | None) -> list[str]:
    if not value or value in (b"[]", b"{}"):
        return []
    try:
        found = msgspec.json.decode(value)
    except (ValueError, UnicodeDecodeError):
        return []
    return decode_texts(found) if isinstance(found, list) else []


def _failure(value: bytes | None) -> dict[str, Any] | None:
    if not value or value == b"{}":
        return None
    try:
        told = msgspec.json.decode(value)
    except (ValueError, UnicodeDecodeError):
        return None
    if not isinstance(told, dict) or not (told.get("group") or told.get("type")):
        return None
    when = told.get("when")
    micros = round(when * 1_000_000) if isinstance(when, int | float) else None
    texts = {name: str(told.get(name) or "") for name in ("message", "worker")}
    return {"group": str(told.get("group") or told["type"]), "when": micros, **texts}
