"""gold/times: how long jobs waited and ran, per day and grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.tables.aggregates import cells, described, merged
from aioqless.contrib.lake.tables.columns import array, constant, day
from aioqless.contrib.lake.tables.groups import KEYS, PARTS, grouped, tag_sets

DONE: Final = ("complete", "advance")  # how runs end that Redis' own statistics count
_FINEST: Final = ("namespace", "date", "queue", "klass", "worker", "tag_set", "kind")


def times(runs: pa.Table) -> pa.Table:
    """Return the seconds that runs waited and took, by `kind`.

    `wait` is of every run, on the day it began; `run` of those that completed and `spent` of all
    others, on the day they ended. Redis' statistics count the first two on the same days.
    """
    codes, sets = tag_sets(runs["tags"])
    kept = runs.select(["namespace", "queue", "klass", "worker"]).append_column("tag_set", codes)
    done = pc.is_in(array(runs["how"]), pa.array(DONE))
    waits = (
        kept.append_column("kind", constant("wait", runs.num_rows))
        .append_column("date", day(runs["popped"]))
        .append_column("seconds", runs["wait"])
    )
    ran = (
        kept.append_column("kind", pc.if_else(done, "run", "spent"))
        .append_column("date", day(runs["ended"]))
        .append_column("seconds", runs["run"])
    )
    both = pa.concat_tables([waits, ran])
    finest = cells(both.filter(pc.is_valid(both["seconds"])), _FINEST)
    with_tags = finest.append_column("tags", sets.take(array(finest["tag_set"])))
    keys = (*KEYS, "kind")
    return pa.concat_tables(
        merged(rows, keys) for rows in grouped(with_tags.drop_columns(["tag_set"]))
    )


def merge_times(times: pa.Table) -> pa.Table:
    """Return one row for each cell, of all numbers of its rows."""
    return described(merged(times, (*KEYS, "kind")))


def merged_times(times: pa.Table, keys: Sequence[str] = PARTS) -> pa.Table:
    """Return rows of one grouping as one for each group of `keys` and `kind`."""
    return described(merged(times, (*keys, "kind")))
