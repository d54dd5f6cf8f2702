"""Cells: count, mean, variance, extremes, histogram and quantiles of many numbers of seconds.

Cells of disjoint numbers merge into the cell of all of them. `squares` is the sum of the squared
distances from the mean, so that variances merge without loss. Quantiles come from `log_bins`,
the number of values in each logarithmic bin; they are within 0.6 % of the true value, whatever was
merged in whatever order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from aioqless.contrib.lake.tables.bins import (
    fine,
    fine_code,
    fine_name,
    logarithmic,
    logarithmic_middle,
    qless,
)
from aioqless.contrib.lake.tables.columns import (
    MICROS,
    Floats,
    Groups,
    Integers,
    array,
    entries,
    maps,
    numbers,
    replace,
)

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
MERGED: Final = ("count", "mean", "squares", "least", "most", "bins", "log_bins")


def cells(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one cell for each group of `keys`, of the column `seconds`."""
    groups = Groups(rows, keys)
    seconds: Floats = numbers(rows["seconds"])
    count = groups.sum(np.ones(len(seconds), np.int64))
    mean = _mean(groups.sum(_micros(seconds)), count)
    return _table(
        groups.keys,
        count=count,
        mean=mean,
        squares=groups.sum((seconds - mean[groups.of]) ** 2),
        least=groups.least(seconds),
        most=groups.most(seconds),
        bins=_counted(groups, groups.of, fine(seconds), None, names=True),
        log_bins=_counted(groups, groups.of, logarithmic(seconds), None),
    )


def merged(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one cell for each group of `keys`, of all numbers that are in its cells."""
    groups = Groups(rows, keys)
    of_cells = {name: numbers(rows[name]) for name in ("count", "mean", "squares", "least", "most")}
    count = groups.sum(of_cells["count"])
    mean = _mean(groups.sum(_micros(of_cells["mean"] * of_cells["count"])), count)
    apart = of_cells["mean"] - mean[groups.of]
    return _table(
        groups.keys,
        count=count,
        mean=mean,
        squares=groups.sum(of_cells["squares"] + of_cells["count"] * apart**2),
        least=groups.least(of_cells["least"]),
        most=groups.most(of_cells["most"]),
        bins=_added(groups, rows["bins"], names=True),
        log_bins=_added(groups, rows["log_bins"]),
    )


def described(cells: pa.Table) -> pa.Table:
    """Add the variance (of the sample, as qless has it), the quantiles and qless' histogram."""
    count = numbers(cells["count"])
    variance = numbers(cells["squares"]) / np.maximum(count - 1, 1)
    ranks = {
        name: pa.array(values)
        for name, values in zip(
            QUANTILES, quantiles(cells, list(QUANTILES.values())).T, strict=True
        )
    }
    return replace(cells, variance=pa.array(variance), histogram=_histogram(cells), **ranks)


def quantiles(cells: pa.Table, ranks: Sequence[float]) -> Floats:
    """Return a row for each cell, with a number of seconds for each of the ranks."""
    count, least, most = (numbers(cells[name]) for name in ("count", "least", "most"))
    rows, bins, counts = entries(cells["log_bins"])
    bin_numbers, bin_counts = numbers(bins), numbers(counts)
    order = np.lexsort((bin_numbers, rows))
    rows, bin_numbers = rows[order], bin_numbers[order]
    below = np.cumsum(bin_counts[order])
    before = np.concatenate([[0], np.cumsum(count)[:-1]])
    found = np.empty((cells.num_rows, len(ranks)))
    for column, rank in enumerate(ranks):
        # The k-th of n numbers, k being the rank's share of n, rounded up.
        wanted = before + np.maximum(np.ceil(rank * count), 1)
        at = np.searchsorted(below, wanted)
        found[:, column] = np.clip(logarithmic_middle(bin_numbers[at]), least, most)
    return found


def _micros(seconds: Floats) -> Integers:
    """Return whole microseconds, of which the sum does not depend on the order."""
    return np.rint(seconds * MICROS).astype(np.int64)


def _mean(total: Integers, count: Integers) -> Floats:
    mean: Floats = total / count / MICROS
    return mean


def _table(keys: pa.Table, **columns: Any) -> pa.Table:
    return replace(
        keys,
        **{
            name: values if isinstance(values, pa.Array) else pa.array(values)
            for name, values in columns.items()
        },
    )


def _added(groups: Groups, column: pa.ChunkedArray, *, names: bool = False) -> pa.Array:
    """Return the sum of the maps of each group."""
    rows, keys, counts = entries(column)
    if names:
        encoded = keys.dictionary_encode()
        codes = np.array([fine_code(name) for name in encoded.dictionary.to_pylist()], np.int64)
        keys = pa.array(codes[encoded.indices.to_numpy()])
    return _counted(groups, groups.of[rows], numbers(keys), numbers(counts), names=names)


def _counted(
    groups: Groups,
    of: Integers,
    bins: Integers,
    counts: Integers | None,
    *,
    names: bool = False,
) -> pa.Array:
    """Return a map for each group: how many of its numbers are in each bin."""
    known, codes = np.unique(bins, return_inverse=True)
    pairs, at = np.unique(of * max(len(known), 1) + codes, return_inverse=True)
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, at, 1 if counts is None else counts)
    rows, keys = np.divmod(pairs, max(len(known), 1))
    named = pa.array([fine_name(code) for code in known.tolist()], pa.string()) if names else None
    return maps(
        rows,
        named.take(pa.array(keys)) if named is not None else pa.array(known[keys], pa.int64()),
        pa.array(total),
        len(groups),
    )


def _histogram(cells: pa.Table) -> pa.Array:
    """Return the histograms in qless' bins."""
    rows, names, counts = entries(cells["bins"])
    encoded = names.dictionary_encode()
    coarse = pa.array([qless(name) for name in encoded.dictionary.to_pylist()], pa.string())
    entry = pa.table(
        {"row": rows, "bin": coarse.take(encoded.indices), "count": counts},
        pa.schema([("row", pa.int64()), ("bin", pa.string()), ("count", pa.int64())]),
    )
    groups = Groups(entry, ("row", "bin"))
    total = groups.sum(numbers(entry["count"]))
    return maps(
        numbers(groups.keys["row"]), array(groups.keys["bin"]), pa.array(total), cells.num_rows
    )
