"""Entries of the archive's stream as columns, with the reason for each that is invalid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from aioqless.contrib.archive import Event, Run, Unreadable, parse_raw
from aioqless.contrib.lake.event_log import Entry, parse_id
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, RUN, TABLES

# Columns with another name than the attribute of an event: SQL reserves `to` and `group`.
_ATTRIBUTES: Final = {"next_queue": "to", "failure_group": "group"}
# Columns of what each run has, beside those of `runs`: no column can be added to these.
_OF_RUNS: Final = {"run_dues": "due", "run_versions": "version"}
_TYPES: Final = {
    each.name: each.type for name in (EVENTS, QUARANTINE) for each in TABLES[name].schema
}
_DAY_US: Final = 86_400_000_000
_EARLIEST_US: Final = 1_262_304_000_000_000  # 2010: qless is younger


def batch_of(ordinal: int, entries: Sequence[Entry], namespace: str) -> pa.RecordBatch:
    """Return one row per entry, with the columns of events and of rejected entries.

    An invalid entry has its reason in `problem` and its fields in `raw`; of others, both are null.

    Args:
        ordinal: The number of the entry before the first one.
        entries: Entries of the stream.
        namespace: Their namespace.
    """
    events: list[Event | None] = []
    problems: list[str | None] = []
    for id, flat in entries:
        try:
            event = parse_raw(id.decode(), flat)
            problem = find_implausible_time(event)
        except Unreadable as why:
            problem = str(why)
        events.append(event if problem is None else None)
        problems.append(problem)
    special: dict[str, Any] = {
        "id": [id.decode() for id, _ in entries],
        "ordinal": range(ordinal + 1, ordinal + 1 + len(entries)),
        "problem": problems,
        "raw": [
            None if problem is None else _to_json(flat)
            for problem, (_, flat) in zip(problems, entries, strict=True)
        ],
        "namespace": [namespace] * len(entries),
        "date": [parse_id(id)[0] * 1000 // _DAY_US for id, _ in entries],
    }
    columns = {
        name: pa.array(special[name], kind) if name in special else _column(name, events, kind)
        for name, kind in _TYPES.items()
    }
    return pa.RecordBatch.from_pydict(columns)


def find_implausible_time(event: Event) -> str | None:
    """Return what is wrong with the times of an event: before 2010, or later than Redis' clock."""
    latest = parse_id(event.id)[0] * 1000 + _DAY_US
    times = [("put", event.put), ("popped", event.popped), ("ended", event.ended)]
    for run in event.runs:
        times += [
            ("put of a run", run.put),
            ("popped of a run", run.popped),
            ("ended of a run", run.ended),
        ]
    for name, time in times:
        if time is not None and time < _EARLIEST_US:
            return f"{name} is {_format_time(time)}, before 2010"
        if time is not None and time > latest:
            return f"{name} is {_format_time(time)}, more than a day after Redis got the entry"
    return None


def _format_time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="seconds")


def _column(name: str, events: Sequence[Event | None], kind: pa.DataType) -> pa.Array:
    of = attrgetter(_ATTRIBUTES.get(name, name))
    if name in _OF_RUNS:
        of = attrgetter(_OF_RUNS[name])
        return pa.array([None if event is None else _of_runs(event, of) for event in events], kind)
    values = [None if event is None else of(event) for event in events]
    if name == "runs":
        return _lists(values, _structs, kind)
    if name in ("tags", "depends"):
        return _lists(values, lambda all: pa.array(all, pa.string()), kind)
    return pa.array(values, kind)


def _of_runs(event: Event, of: Callable[[Run], object]) -> list[object] | None:
    values = [of(each) for each in event.runs]
    return values if any(each is not None for each in values) else None


def _structs(runs: list[Any]) -> pa.Array:
    fields = [pa.field(each.name, each.type) for each in RUN]
    columns = [
        pa.array(
            map(attrgetter(_ATTRIBUTES.get(each.name, each.name)), runs), each.type, size=len(runs)
        )
        for each in fields
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
