"""Entries of the archive's stream as columns: one row for each, the reason beside it where one
can't be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import pyarrow as pa

from aioqless.client.archive.entry import Event, Unreadable, parse_raw
from aioqless.contrib.lake.source.events import Entry

TIME = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("element", pa.string()))
_RUN = {
    "put": TIME, "popped": TIME, "ended": TIME, "how": pa.string(), "worker": pa.string(), "fence": pa.int64(), "group": pa.string(),
    "message": pa.string(),
}  # fmt: skip
RUNS = pa.list_(pa.field("element", pa.struct(list(_RUN.items()))))

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "ordinal": pa.int64(),
        "what": pa.string(),
        "jid": pa.string(),
        "klass": pa.string(),
        "queue": pa.string(),
        "to": pa.string(),
        "was": pa.string(),
        "state": pa.string(),
        "priority": pa.float64(),
        "tags": TEXTS,
        "worker": pa.string(),
        "put": TIME,
        "popped": TIME,
        "ended": TIME,
        "retries": pa.int64(),
        "remaining": pa.int64(),
        "fence": pa.int64(),
        "group": pa.string(),
        "message": pa.string(),
        "spawned_from": pa.string(),
        "depends": TEXTS,
        "runs": RUNS,
        "data": pa.string(),
        "data_size": pa.int64(),
        "swept": pa.bool_(),
        "history": pa.string(),
        "problem": pa.string(),
        "raw": pa.string(),
    }
)


def batch_of(n: int, entries: Sequence[Entry], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of entries that follow the `n`-th, with a schema's columns."""
    events: list[Event | None] = []
    problems: dict[int, str] = {}
    for index, (sid, flat) in enumerate(entries):
        try:
            events.append(parse_raw(sid.decode(), flat))
        except Unreadable as why:
            events.append(None)
            problems[index] = str(why)
    made: dict[str, Callable[[], Any]] = {
        "id": lambda: [sid.decode() for sid, _ in entries],
        "ordinal": lambda: range(n + 1, n + 1 + len(entries)),
        "problem": lambda: [problems.get(index) for index in range(len(entries))],
        "raw": lambda: [
            _shown(entries[index][1]) if index in problems else None
            for index in range(len(entries))
        ],
    }
    columns = [
        pa.array(made[field.name](), field.type)
        if field.name in made
        else _column(field.name, events, bool(problems), field.type)
        for field in schema
    ]
    made_of: pa.RecordBatch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return made_of


def _column(
    name: str, events: Sequence[Event | None], with_problems: bool, kind: pa.DataType
) -> pa.Array:
    of = attrgetter(name)
    values = (
        [None if event is None else of(event) for event in events]
        if with_problems
        else list(map(of, events))
    )
    if name == "runs":
        return _runs(values)
    if name in ("tags", "depends"):
        return _lists(values, lambda all: pa.array(all, pa.string()), TEXTS)
    return pa.array(values, kind)


def _runs(values: Sequence[Any]) -> pa.Array:
    def structs(all: list[Any]) -> pa.Array:
        return pa.StructArray.from_arrays(
            [
                pa.array(map(attrgetter(name), all), kind, size=len(all))
                for name, kind in _RUN.items()
            ],
            fields=list(RUNS.value_type),
        )

    return _lists(values, structs, RUNS)


def _lists(
    values: Sequence[Any], build: Callable[[list[Any]], pa.Array], kind: pa.DataType
) -> pa.Array:
    """Lists as their items in one array and where each begins, which is much quicker than one by
    one."""
    offsets, at = [], 0
    for value in values:
        offsets.append(None if value is None else at)
        at += len(value or ())
    offsets.append(at)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        build(list(chain.from_iterable(filter(None, values)))),
        type=kind,
    )


def _shown(flat: Iterable[bytes]) -> str:
    texts = [each.decode("utf-8", "replace") for each in flat]
    return json.dumps(
        dict(zip(texts[::2], [*texts[1::2], *([""] * (len(texts) % 2))], strict=True)),
        ensure_ascii=False,
    )
