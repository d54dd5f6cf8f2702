"""Makes the row of a group of the sums of its bins, in the tasks that write it.

A task gets the rows of `sql/groups.sql` sorted, all of a group one after another. The maps of a
cell are therefore slices of columns: no list of a group's values is ever made.

Percentiles come from bins that grow by 2^(1/64). They are exact if the bin has one or two numbers;
else they are interpolated between the least and the greatest number of the bin, which are at most
1.1 % apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.schema import COUNTS, KLASSES, TEXT, WHOLE

Numbers = npt.NDArray[Any]

GROUP: Final = ("_table", "namespace", "date", "queue", "klass", "worker", "tag")
SORTED: Final = (*GROUP, "kind", "bin", "q")
_KINDS: Final = ("wait", "run", "spent")
_ENDS: Final = {
    "complete": "completed",
    "advance": "advanced",
    "fail": "failed",
    "cancel": "cancelled",
    "move": "moved",
}
_RUNS: Final = {
    "retried": "retried",
    "released": "released",
    "timed-out": "timed_out",
    "lost": "lost",
}
_SHARES: Final = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}


def describe_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each group of rows that are sorted by `SORTED`."""
    rest: pa.RecordBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        rows = batch if rest is None else _join(rest, batch)
        last = int(_starts(rows)[-1])  # the next batch may have more of this group
        if last:
            yield _describe(rows.slice(0, last))
        rest = rows.slice(last)
    if rest is not None:
        yield _describe(rest)


def _join(*batches: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _starts(rows: pa.RecordBatch) -> Numbers:
    """Return the number of the first row of each group."""
    differs = np.zeros(len(rows) - 1, bool)
    for name in GROUP:
        column = rows[name]
        before, after = column.slice(0, len(rows) - 1), column.slice(1)
        differs |= pc.fill_null(pc.not_equal(before, after), False).to_numpy(False)
        if column.null_count:
            differs |= pc.xor(pc.is_null(before), pc.is_null(after)).to_numpy(False)
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def _describe(rows: pa.RecordBatch) -> pa.RecordBatch:
    starts = _starts(rows)
    total = len(starts)
    group = np.repeat(np.arange(total), np.diff(np.append(starts, len(rows))))
    number = rows["number"].to_numpy()
    kind = {name: pc.equal(rows["kind"], name).to_numpy(False) for name in (*_KINDS, "end")}
    is_run = kind["run"] | kind["spent"]

    def count(chosen: Numbers) -> pa.Array:
        return pa.array(np.bincount(group[chosen], number[chosen], total).astype(np.int64))

    def is_how(how: str) -> Numbers:
        found: Numbers = pc.fill_null(pc.equal(rows["how"], how), False).to_numpy(False)
        return found

    counts = {"runs": count(is_run)}
    counts |= {name: count(kind["end"] & is_how(how)) for how, name in _ENDS.items()}
    counts |= {name: count(is_run & is_how(how)) for how, name in _RUNS.items()}
    has_time = pc.is_valid(rows["bin"]).to_numpy(False)
    firsts = pa.array(starts)
    columns = {name: rows[name].take(firsts) for name in GROUP}
    columns |= {name: counts[name] for name in COUNTS}
    for name in _KINDS:
        chosen = kind[name] & has_time
        columns[name] = _cells(rows.filter(pa.array(chosen)), group[chosen], total, name)
    return pa.RecordBatch.from_pydict(columns)


def _cells(rows: pa.RecordBatch, group: Numbers, total: int, kind: str) -> pa.Array:
    """Return a cell for each of the groups; null for those without a row."""
    declared = KLASSES.field(kind).type
    if not len(rows):
        return pa.nulls(total, declared)
    columns = {
        name: rows[name].to_numpy()
        for name in ("bin", "q", "number", "distances", "squares", "least", "most")
    }
    at = _first_of(group, columns["bin"])
    of, bins = group[at], columns["bin"][at]
    number = np.add.reduceat(columns["number"], at)
    distances = np.add.reduceat(columns["distances"], at)
    squares = np.add.reduceat(columns["squares"], at)
    least = np.minimum.reduceat(columns["least"], at)
    most = np.maximum.reduceat(columns["most"], at)

    cells = _first_of(of)
    count = np.add.reduceat(number, cells)
    middle = np.exp2((bins + 0.5) / 64)
    mean = np.add.reduceat(number * middle + distances, cells) / count
    off = np.repeat(mean, np.diff(np.append(cells, len(of)))) - middle
    deviations = np.add.reduceat(squares - 2 * off * distances + number * off * off, cells)
    found: dict[str, Any] = {
        "count": count,
        "mean": mean,
        "variance": np.maximum(deviations, 0) / np.maximum(count - 1, 1) * (count > 1),
        "least": np.minimum.reduceat(least, cells),
        "most": np.maximum.reduceat(most, cells),
    }
    seen = np.cumsum(number)
    before = seen[cells] - number[cells]
    for name, share in _SHARES.items():
        rank = before + -(-count * share // 100)
        bin = np.searchsorted(seen, rank)
        within = rank - (seen[bin] - number[bin]) - 1
        step = (most[bin] - least[bin]) / np.maximum(number[bin] - 1, 1)
        found[name] = least[bin] + step * within

    q_at = _first_of(group, columns["q"])
    names, which = np.unique(columns["q"][q_at], return_inverse=True)
    found["histogram"] = pa.MapArray.from_arrays(
        np.append(_first_of(group[q_at]), len(q_at)).astype(np.int32),
        pa.array(map(_name_bin, names.tolist()), TEXT).take(pa.array(which)),
        pa.array(np.add.reduceat(columns["number"], q_at), WHOLE),
    )
    found["log_bins"] = pa.MapArray.from_arrays(
        np.append(cells, len(of)).astype(np.int32), pa.array(bins, WHOLE), pa.array(number, WHOLE)
    )
    made = pa.StructArray.from_arrays(
        [pa.array(found[each.name]) for each in declared], fields=list(declared)
    )
    place = np.full(total, -1)
    place[of[cells]] = np.arange(len(cells))
    return made.take(pa.array(place, WHOLE, mask=place < 0))


def _first_of(*columns: Numbers) -> Numbers:
    """Return where a value of any of the columns differs from the one before."""
    differs = np.zeros(len(columns[0]) - 1, bool)
    for column in columns:
        differs |= column[1:] != column[:-1]
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def _name_bin(q: int) -> str:
    """Return the name of a bin of qless' histogram."""
    for unit, before in (("d", 144), ("h", 120), ("m", 60)):
        if q > before:
            return f"{unit}{q - before}"
    return f"s{q}"
