"""gold/throughput: minutes of a queue: how many jobs came, began, ended, waited and ran."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.tables.columns import (
    DAY,
    MICROS,
    Groups,
    Integers,
    array,
    dates,
    micros,
    numbers,
)

LONGEST: Final = 31  # days of a wait or a run that are counted, the last ones
_LEVELS: Final = {"waiting": ("put", "popped"), "running": ("popped", "ended")}
_MOMENTS: Final = ("put", "popped", "completed", "failed", "retried")
_KEYS: Final = ("namespace", "date", "queue", "start")
_DAY: Final = DAY * MICROS


def throughput(runs: pa.Table, width: int = 60) -> pa.Table:
    """Return one row for each queue and period in which a job waited, ran, came or ended.

    A period has `width` seconds, which divide a day. `waiting` and `running` are means over the
    time, of runs that have ended: what still runs or waits is not in the lake yet. Of what lasted
    longer than a month, only the last month counts.
    """
    queues = Groups(runs, ("namespace", "queue"))
    slots = pa.concat_tables(
        [
            _moments(runs, queues.of, width * MICROS),
            *(_levels(runs, queues.of, name, width * MICROS) for name in _LEVELS),
        ]
    )
    groups = Groups(slots, ("queue", "slot"))
    slot = numbers(groups.keys["slot"])
    of_queue = queues.keys.take(array(groups.keys["queue"]))
    keys = {
        "namespace": of_queue["namespace"],
        "date": dates(slot * width // DAY),
        "queue": of_queue["queue"],
        "start": pa.array(slot * width * MICROS).cast(pa.timestamp("us", "UTC")),
    }
    return _table(groups, slots, pa.table(keys), width)


def merge_throughput(throughput: pa.Table) -> pa.Table:
    """Return one row for each queue and minute, with the sums of its rows."""
    if not throughput.num_rows:
        return throughput
    width = throughput["seconds"][0].as_py()
    # Levels are summed as whole microseconds, so that the order of sums does not matter.
    spent = {
        name: np.rint(numbers(throughput[name]) * width * MICROS).astype(np.int64)
        for name in _LEVELS
    }
    groups = Groups(throughput, _KEYS)
    rows = pa.table({name: throughput[name] for name in _MOMENTS} | spent)
    return _table(groups, rows, groups.keys, width)


def _table(groups: Groups, rows: pa.Table, keys: pa.Table, width: int) -> pa.Table:
    for name in _MOMENTS:
        keys = keys.append_column(name, pa.array(groups.sum(numbers(rows[name])), pa.int64()))
    for name in _LEVELS:
        means = groups.sum(numbers(rows[name])) / (width * MICROS)
        keys = keys.append_column(name, pa.array(means, pa.float64()))
    return keys.append_column("seconds", pa.array(np.full(len(groups), width, np.int64)))


def _moments(runs: pa.Table, queues: Integers, width: int) -> pa.Table:
    """Return what happened at one moment: a job came into a stage, a run began, a run ended."""
    how = array(runs["how"])
    is_done = pc.is_in(how, pa.array(["complete", "advance"]))
    ended = pc.if_else(is_done, 2, pc.if_else(pc.equal(how, "fail"), 3, 4)).to_numpy()
    first = pc.equal(array(runs["attempt"]), 1)
    every = [
        ("put", pc.and_(first, pc.is_valid(array(runs["put"]))), np.full(len(how), 0)),
        ("popped", pc.is_valid(array(runs["popped"])), np.full(len(how), 1)),
        ("ended", pc.is_valid(array(runs["ended"])), ended),
    ]
    rows = [np.flatnonzero(numbers(chosen.cast(pa.int8()))) for _, chosen, _ in every]
    times = [
        numbers(micros(runs[name]))[chosen]
        for (name, _, _), chosen in zip(every, rows, strict=True)
    ]
    kinds = np.concatenate([kind[chosen] for (_, _, kind), chosen in zip(every, rows, strict=True)])
    moments = {name: (kinds == number) for number, name in enumerate(_MOMENTS)}
    return _slots(queues[np.concatenate(rows)], np.concatenate(times) // width, **moments)


def _levels(runs: pa.Table, queues: Integers, level: str, width: int) -> pa.Table:
    """Return for how many microseconds of each slot jobs waited or ran, added up."""
    begin, end = _LEVELS[level]
    known = runs.select([begin, end]).append_column("of", pa.array(queues)).drop_null()
    of, start, stop = (
        numbers(known["of"]),
        numbers(micros(known[begin])),
        numbers(micros(known[end])),
    )
    start = np.maximum(start, (stop // _DAY - LONGEST + 1) * _DAY)
    spans = start < stop
    of, start, stop = of[spans], start[spans], stop[spans]
    first, last = start // width, stop // width
    within = first == last
    edges = [
        _slots(of[within], first[within], **{level: (stop - start)[within]}),
        _slots(of[~within], first[~within], **{level: ((first + 1) * width - start)[~within]}),
        _slots(of[~within], last[~within], **{level: (stop - last * width)[~within]}),
    ]
    return pa.concat_tables(
        [*edges, _between(of[~within], first[~within] + 1, last[~within], level, width)]
    )


def _between(of: Integers, first: Integers, last: Integers, level: str, width: int) -> pa.Table:
    """Return the slots that spans cover as a whole, the last one excluded."""
    of, slot = np.concatenate([of, of]), np.concatenate([first, last])
    step = np.repeat([1, -1], len(first))
    order = np.lexsort((slot, of))
    of, slot, depth = of[order], slot[order], np.cumsum(step[order])
    # The depth holds until the next step; it is 0 where the steps of another queue follow.
    length = np.where(depth > 0, np.diff(slot, append=0), 0)
    position = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    return _slots(
        np.repeat(of, length),
        np.repeat(slot, length) + position,
        **{level: np.repeat(depth, length) * width},
    )


def _slots(queues: Integers, slots: Integers, **values: Integers) -> pa.Table:
    zeros = np.zeros(len(queues), np.int64)
    columns = {name: values.get(name, zeros) for name in (*_MOMENTS, *_LEVELS)}
    return pa.table(
        {"queue": queues, "slot": slots}
        | {name: column.astype(np.int64) for name, column in columns.items()}
    )
