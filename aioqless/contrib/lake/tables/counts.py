"""gold/counts: how stages of jobs and their runs ended, per day and grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.tables.columns import Groups, array, day, numbers
from aioqless.contrib.lake.tables.groups import KEYS, grouped, tag_sets

ENDS: Final = {
    "completed": "complete",
    "advanced": "advance",
    "failed": "fail",
    "cancelled": "cancel",
    "moved": "move",
}
RUNS: Final = {
    "retried": "retried",
    "released": "released",
    "timed_out": "timed-out",
    "lost": "lost",
}
NUMBERS: Final = (*ENDS, "runs", *RUNS)
_PARTS: Final = ("namespace", "queue", "klass", "tags", "worker")
_FINEST: Final = ("namespace", "date", "queue", "klass", "tag_set", "worker")


def counts(events: pa.Table, runs: pa.Table) -> pa.Table:
    """Return how many stages ended in each way, and how many runs there were.

    Runs that ended without ending the stage are counted by how they ended.
    """
    rows = pa.concat_tables([_counted(events, "what", ENDS), _counted(runs, "how", RUNS)])
    codes, sets = tag_sets(rows["tags"])
    finest = merge(rows.drop_columns(["tags"]).append_column("tag_set", codes), _FINEST)
    with_tags = finest.append_column("tags", sets.take(array(finest["tag_set"])))
    return pa.concat_tables(merge(rows, KEYS) for rows in grouped(with_tags))


def merge_counts(counts: pa.Table) -> pa.Table:
    """Return one row for each cell, with the sums of its rows."""
    return merge(counts, KEYS)


def merge(counts: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row for each group of `keys`."""
    groups = Groups(counts, keys)
    sums = {name: groups.sum(numbers(counts[name])) for name in NUMBERS}
    table = groups.keys
    for name, values in sums.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table


def _counted(rows: pa.Table, how: str, names: dict[str, str]) -> pa.Table:
    """Return the rows with a 1 in the column that says how each ended."""
    ended = {name: pc.equal(array(rows[how]), value) for name, value in names.items()}
    ones = {name: pc.cast(pc.fill_null(flags, False), pa.int64()) for name, flags in ended.items()}
    if names is RUNS:
        ones["runs"] = pa.array(np.ones(rows.num_rows, np.int64))
    zeros = pa.array(np.zeros(rows.num_rows, np.int64))
    return pa.table(
        {name: rows[name] for name in _PARTS}
        | {"date": day(rows["ended"])}
        | {name: ones.get(name, zeros) for name in NUMBERS}
    )
