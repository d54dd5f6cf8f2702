"""Entries of the archive's stream as columns, with the reason for each that can't be parsed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from aioqless.contrib.archive import Event, Unreadable, parse_raw
from aioqless.contrib.lake.schema import EVENT
from aioqless.contrib.lake.source.events import Entry

# Columns with another name than the attribute of an event: SQL reserves `to` and `group`.
_ATTRIBUTES: Final = {"next_queue": "to", "failure_group": "group"}
_RUNS: Final = EVENT.field("runs").type

SCHEMA: Final = pa.schema(
    [
        *(pa.field(each.name, each.type) for each in EVENT),
        pa.field("problem", pa.string()),
        pa.field("raw", pa.string()),
    ]
)


def batch_of(
    ordinal: int,
    entries: Sequence[Entry],
    schema: pa.Schema,
    find_problem: Callable[[Event], str | None] = lambda _: None,
) -> pa.RecordBatch:
    """Return the rows of entries, with a schema's columns.

    Args:
        ordinal: The number of the entry before the first one.
        entries: Entries of the stream.
        schema: The columns.
        find_problem: Returns why an event that can be parsed is invalid nevertheless.

    Returns:
        One row per entry; an invalid one has its reason in `problem` and its fields in `raw`.
    """
    events: list[Event | None] = []
    problems: dict[int, str] = {}
    for index, (id, flat) in enumerate(entries):
        try:
            event = parse_raw(id.decode(), flat)
            problem = find_problem(event)
        except Unreadable as why:
            problem = str(why)
        if problem is None:
            events.append(event)
        else:
            events.append(None)
            problems[index] = problem
    special: dict[str, Callable[[], Any]] = {
        "id": lambda: [id.decode() for id, _ in entries],
        "ordinal": lambda: range(ordinal + 1, ordinal + 1 + len(entries)),
        "problem": lambda: [problems.get(index) for index in range(len(entries))],
        "raw": lambda: [
            _to_json(entries[index][1]) if index in problems else None
            for index in range(len(entries))
        ],
    }
    columns = [
        pa.array(special[field.name](), field.type)
        if field.name in special
        else _column(field.name, events, bool(problems), field.type)
        for field in schema
    ]
    batch: pa.RecordBatch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return batch


def _column(
    name: str, events: Sequence[Event | None], with_problems: bool, kind: pa.DataType
) -> pa.Array:
    of = attrgetter(_ATTRIBUTES.get(name, name))
    values = (
        [None if event is None else of(event) for event in events]
        if with_problems
        else list(map(of, events))
    )
    if name == "runs":
        return _lists(values, _structs, _RUNS)
    if name in ("tags", "depends"):
        return _lists(values, lambda all: pa.array(all, pa.string()), kind)
    return pa.array(values, kind)


def _structs(runs: list[Any]) -> pa.Array:
    fields = list(_RUNS.value_type)
    columns = [
        pa.array(
            map(attrgetter(_ATTRIBUTES.get(field.name, field.name)), runs),
            field.type,
            size=len(runs),
        )
        for field in fields
    ]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _lists(
    values: Sequence[Any], build: Callable[[list[Any]], pa.Array], kind: pa.DataType
) -> pa.Array:
    """Return lists, made of all their items in one array, which is faster than one by one."""
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


def _to_json(flat: Iterable[bytes]) -> str:
    texts = [each.decode("utf-8", "replace") for each in flat]
    return json.dumps(
        dict(zip(texts[::2], [*texts[1::2], *([""] * (len(texts) % 2))], strict=True)),
        ensure_ascii=False,
    )
