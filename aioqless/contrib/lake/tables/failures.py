"""gold/failures: failures per day, group and queue, with times, klasses and samples."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.tables.columns import (
    Groups,
    array,
    constant,
    day,
    elements,
    lists,
    micros,
    numbers,
    replace,
)

SAMPLES: Final = 5  # the latest of a day
LONGEST: Final = 2000  # characters of a sample's message: its end, where a traceback says the error
HOURS: Final = 24
_HOUR: Final = 3_600_000_000
_KEYS: Final = ("namespace", "date", "failure_group", "queue")
_SAMPLE: Final = ("ended", "jid", "klass", "worker", "message", "final")
_TIME: Final = pa.timestamp("us", "UTC")


def failures(events: pa.Table, runs: pa.Table) -> pa.Table:
    """Return failures of stages (`count`), and failures of runs that were retried (`retried`)."""
    failed = pc.equal(array(events["what"]), "fail")
    retried = pc.not_equal(array(runs["how"]), "fail")
    return merge_failures(
        pa.concat_tables(
            [_cells(events.filter(failed), final=True), _cells(runs.filter(retried), final=False)]
        )
    )


def merge_failures(failures: pa.Table) -> pa.Table:
    """Return one row for each day, group and queue."""
    groups = Groups(failures, _KEYS)
    _, hourly = elements(failures["by_hour"])
    by_hour = groups.sum(numbers(hourly).reshape(-1, HOURS)).reshape(-1)
    hours = np.repeat(np.arange(len(groups)), HOURS)
    return replace(
        groups.keys,
        count=pa.array(groups.sum(numbers(failures["count"])), pa.int64()),
        retried=pa.array(groups.sum(numbers(failures["retried"])), pa.int64()),
        first_seen=pa.array(groups.least(numbers(micros(failures["first_seen"])))).cast(_TIME),
        last_seen=pa.array(groups.most(numbers(micros(failures["last_seen"])))).cast(_TIME),
        klasses=_klasses(groups, failures["klasses"]),
        by_hour=lists(hours, pa.array(by_hour, pa.int64()), len(groups)),
        samples=_samples(groups, failures["samples"]),
    )


def _cells(rows: pa.Table, *, final: bool) -> pa.Table:
    """Return one row of the table for each failure."""
    rows = rows.filter(pc.is_valid(array(rows["failure_group"])))
    length = rows.num_rows
    hours = numbers(micros(rows["ended"])) // _HOUR % HOURS
    by_hour = np.zeros((length, HOURS), np.int64)
    if final:
        by_hour[np.arange(length), hours] = 1
    message = array(rows["message"])
    shortened = pc.binary_join_element_wise(
        "…", pc.utf8_slice_codeunits(message, start=-LONGEST), ""
    )
    long = pc.greater(pc.utf8_length(message), LONGEST)
    sample = pa.StructArray.from_arrays(
        [
            *(array(rows[name]) for name in ("ended", "jid", "klass", "worker")),
            pc.if_else(pc.fill_null(long, False), shortened, message),
            pa.array(np.full(length, final)),
        ],
        _SAMPLE,
    )
    return pa.table(
        {
            "namespace": rows["namespace"],
            "date": day(rows["ended"]),
            "failure_group": rows["failure_group"],
            "queue": rows["queue"],
            "count": constant(int(final), length),
            "retried": constant(int(not final), length),
            "first_seen": rows["ended"],
            "last_seen": rows["ended"],
            "klasses": lists(np.arange(length), array(rows["klass"]), length),
            "by_hour": lists(
                np.repeat(np.arange(length), HOURS), pa.array(by_hour.reshape(-1)), length
            ),
            "samples": lists(np.arange(length), sample, length),
        }
    )


def _klasses(groups: Groups, column: pa.ChunkedArray) -> pa.Array:
    rows, names = elements(column)
    distinct = Groups(
        pa.table({"group": pa.array(groups.of[rows]), "klass": names}), ("group", "klass")
    ).keys.sort_by([("group", "ascending"), ("klass", "ascending")])
    return lists(numbers(distinct["group"]), array(distinct["klass"]), len(groups))


def _samples(groups: Groups, column: pa.ChunkedArray) -> pa.Array:
    """Return the latest samples of each group, failures of stages before retried runs."""
    rows, samples = elements(column)
    fields = {name: pc.struct_field(samples, name) for name in _SAMPLE}
    of = groups.of[rows]
    order = pc.sort_indices(
        pa.table({"group": pa.array(of), **fields}),
        [
            ("group", "ascending"),
            ("final", "descending"),
            ("ended", "descending"),
            ("jid", "ascending"),
        ],
    ).to_numpy()
    of = of[order]
    kept = np.arange(len(of)) - np.searchsorted(of, of) < SAMPLES
    return lists(of[kept], samples.take(pa.array(order[kept])), len(groups))
