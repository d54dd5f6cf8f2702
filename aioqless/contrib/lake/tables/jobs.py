"""silver/jobs: one row for each job, with its stages.

A job stays in the partition of the day on which its first stage ended.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.schema import STAGE, TABLES
from aioqless.contrib.lake.tables.columns import (
    Groups,
    Integers,
    array,
    dates,
    day_numbers,
    elements,
    lists,
    micros,
    numbers,
    replace,
    seconds_between,
)

STAGES: Final = 100  # the last stages of a job that its row has; its totals are of all
_OF_LAST: Final = (
    *("klass", "queue", "state", "priority", "tags", "worker", "popped", "ended"),
    *("retries", "remaining", "failure_group", "message"),
)
_NEVER: Final = np.iinfo(np.int64).max


def jobs(events: pa.Table) -> pa.Table:
    """Return one row for each event, as if its stage were all there is of the job."""
    ran = _totals(events)
    staged = replace(events, **ran, swept=pc.fill_null(array(events["swept"]), False))
    stage = pa.StructArray.from_arrays([array(staged[name]) for name in STAGE.names], STAGE.names)
    row = replace(staged, stages=lists(np.arange(events.num_rows), stage, events.num_rows))
    return row.select(TABLES["silver/jobs"].schema.names)


def merge_jobs(jobs: pa.Table) -> pa.Table:
    """Return one row for each jid of a namespace.

    It has what the last stage says, the totals of all rows, and the stages in their order.
    """
    groups = Groups(jobs, ("namespace", "jid"))
    rows, stages = elements(jobs["stages"])
    of = groups.of[rows]
    fields = {name: pc.struct_field(stages, name) for name in ("ended", "id")}
    order = pc.sort_indices(
        pa.table({"of": of, **fields}),
        [("of", "ascending"), ("ended", "ascending"), ("id", "ascending")],
    ).to_numpy()
    of, stages = of[order], stages.take(pa.array(order))
    end = np.searchsorted(of, np.arange(len(groups)), side="right")
    last = stages.take(pa.array(end - 1))
    kept = end[of] - np.arange(len(of)) <= STAGES
    puts = pc.fill_null(micros(jobs["put"]), _NEVER).to_numpy()
    put = groups.least(puts)
    merged = replace(
        groups.keys,
        **{name: pc.struct_field(last, name) for name in _OF_LAST},
        put=pa.array(put, mask=put == _NEVER).cast(pa.timestamp("us", "UTC")),
        **{name: pa.array(groups.sum(numbers(jobs[name]))) for name in ("attempts", "wait", "run")},
        spawned_from=_first_known(groups, jobs, rows[order]),
        depends=_all_dependencies(groups, jobs["depends"]),
        stages=lists(of[kept], stages.filter(pa.array(kept)), len(groups)),
        date=dates(groups.least(numbers(day_numbers(jobs["date"])))),
    )
    return merged.select(TABLES["silver/jobs"].schema.names)


def _totals(events: pa.Table) -> dict[str, pa.Array]:
    """Return the number of runs of each event, and the seconds that they waited and ran."""
    rows, each = elements(events["runs"])
    times = {name: pc.struct_field(each, name) for name in ("put", "popped", "ended")}
    began = pc.is_valid(times["popped"]).cast(pa.int64()).to_numpy()
    totals = {"attempts": began}
    for name, start, end in (("wait", "put", "popped"), ("run", "popped", "ended")):
        totals[name] = numbers(seconds_between(times[start], times[end]))
    return {name: pa.array(_sum(rows, values, events.num_rows)) for name, values in totals.items()}


def _sum(rows: Integers, values: Integers, length: int) -> Integers:
    total = np.zeros(length, values.dtype)
    np.add.at(total, rows, values)
    return total


def _first_known(groups: Groups, jobs: pa.Table, rows: Integers) -> pa.Array:
    """Return the recurring job of the earliest row that has one.

    `rows` are in the order of their stages.
    """
    known = pc.is_valid(array(jobs["spawned_from"])).to_numpy(zero_copy_only=False)[rows]
    first = np.full(len(groups), -1)
    chosen = rows[known][::-1]
    first[groups.of[chosen]] = chosen
    return array(jobs["spawned_from"]).take(pa.array(first, mask=first < 0))


def _all_dependencies(groups: Groups, column: pa.ChunkedArray) -> pa.Array:
    rows, jids = elements(column)
    pairs = Groups(pa.table({"of": groups.of[rows], "jid": jids}), ("of", "jid")).keys
    order = np.argsort(numbers(pairs["of"]), kind="stable")
    sorted_pairs = pairs.take(pa.array(order))
    return lists(numbers(sorted_pairs["of"]), array(sorted_pairs["jid"]), len(groups))
