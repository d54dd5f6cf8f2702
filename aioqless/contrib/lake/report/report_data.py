"""The numbers that the report shows: few and plain, whatever the size of the lake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lake_reader import files_since, read_rows
from aioqless.contrib.lake.statistics import read_times, statistics
from aioqless.contrib.lake.tables.aggregates import cells, merged, quantiles
from aioqless.contrib.lake.tables.bins import logarithmic_middle
from aioqless.contrib.lake.tables.columns import (
    DAY,
    MICROS,
    Floats,
    Groups,
    array,
    day_numbers,
    entries,
    micros,
    numbers,
    replace,
)
from aioqless.contrib.lake.tables.failures import merge_failures
from aioqless.contrib.lake.tables.throughput import merge_throughput, throughput
from aioqless.contrib.lake.tables.times import DONE

SHORT: Final = 3  # days that are shown finer than by the hour, from the runs themselves
WIDTHS: Final = (
    1,
    2,
    5,
    10,
    30,
    60,
    120,
    300,
    600,
    1800,
    3600,
    10_800,
    21_600,
    DAY,
)  # seconds; each divides a day
SLOTS: Final = 90  # about so many on a time axis
EDGES: Final = tuple(
    10 ** (exponent / 8) for exponent in range(-32, 57)
)  # of histograms: 0.1 ms to 10^7 s, eight to a decade
RANKS: Final = (0.5, 0.9, 0.99)
PATHS: Final = 6
GROUPS: Final = 12
_DONE_IN_SLOT: Final = ("put", "completed", "failed", "retried")
_OF_FLOW: Final = (
    *("namespace", "date", "queue", "start", "seconds"),
    *("put", "popped", "completed", "failed", "retried", "waiting", "running"),
)


@dataclass
class Gathered:
    """What the page shows. Times are seconds, moments seconds since the epoch; each `…_over_time`
    is a list of rows by time."""

    first: date
    last: date
    namespaces: list[str]
    width: int = DAY
    total: dict[str, Any] = field(default_factory=dict)
    queues: list[dict[str, Any]] = field(default_factory=list)
    klasses: list[dict[str, Any]] = field(default_factory=list)
    histograms: dict[str, list[tuple[float, float, float]]] = field(
        default_factory=dict
    )  # by kind: from, to, how many
    bands: dict[str, list[tuple[float, int, list[float]]]] = field(
        default_factory=dict
    )  # by kind: moment, how many, quantiles
    flow: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    week: list[list[int]] = field(default_factory=list)  # by weekday, from Monday, and hour
    paths: list[dict[str, Any]] = field(default_factory=list)


def gather(lake: Lake, first: date, namespace: str | None = None) -> Gathered | None:
    """The numbers of the days from `first` on; None if nothing ran or ended in them."""
    files = {
        name: files_since(lake, name, first, namespace)
        for name in ("gold/times", "gold/counts", "gold/throughput", "gold/failures", "gold/paths")
    }
    dated = [*files["gold/times"], *files["gold/counts"]]  # what never ran has no times
    total = statistics(lake, first, "", namespace) if dated else []
    if not total:
        return None
    report = Gathered(
        min(each.date for each in dated),
        max(each.date for each in dated),
        sorted({each.namespace for each in dated}),
    )
    (report.total,) = total
    report.queues = statistics(lake, first, "queue", namespace)
    report.klasses = statistics(lake, first, "klass", namespace)
    daily = read_times(lake, first, "", ["date", "kind"], namespace)
    report.histograms = {kind: _histogram(_of_kind(daily, kind)) for kind in ("wait", "run")}
    flow = read_rows(lake, "gold/throughput", files["gold/throughput"], _OF_FLOW, None, _add_queues)
    began, ended = _span(flow)
    report.width = next((width for width in WIDTHS if (ended - began) / width <= SLOTS), DAY)
    if (report.last - report.first).days < SHORT:
        if report.width < 60:
            flow = _fine_flow(lake, first, namespace, report.width)
        report.bands = _bands(lake, first, namespace, report.width)
    else:
        report.width = max(report.width, 3600)
        report.bands = {kind: _daily(_of_kind(daily, kind)) for kind in ("wait", "run")}
    report.flow = _flow(flow, report.width)
    report.week = _week(flow)
    report.failures = _failures(read_rows(lake, "gold/failures", files["gold/failures"]))
    report.paths = _paths(read_rows(lake, "gold/paths", files["gold/paths"]))
    return report


def _of_kind(cells: pa.Table, kind: str) -> pa.Table:
    return cells.filter(pc.equal(array(cells["kind"]), kind))


def _histogram(times: pa.Table) -> list[tuple[float, float, float]]:
    """Of all days, in bins that grow by the same factor: out of the logarithmic bins, so those of
    seconds don't have to be fine enough."""
    if not times.num_rows:
        return []
    _, bins, counts = entries(merged(times, ["kind"])["log_bins"])
    bounds = (0.0, *EDGES, EDGES[-1] * 10 ** (1 / 8))
    at = np.clip(np.searchsorted(bounds, logarithmic_middle(numbers(bins))) - 1, 0, len(EDGES))
    many = np.bincount(at, numbers(counts), len(EDGES) + 1).tolist()
    bars = [(low, high, each) for (low, high), each in zip(pairwise(bounds), many, strict=True)]
    filled = [number for number, (_, _, each) in enumerate(bars) if each > 0]
    return bars[filled[0] : filled[-1] + 1]


def _span(flow: pa.Table) -> tuple[float, float]:
    bounds = pc.min_max(flow["start"])
    now = datetime.now(UTC)
    begin, end = (bounds[name].as_py() or now for name in ("min", "max"))
    return begin.timestamp(), end.timestamp() + 60


def _add_queues(flow: pa.Table) -> pa.Table:
    """Return the throughput of all queues of all namespaces together."""
    length = flow.num_rows
    together = pa.repeat(pa.scalar("", pa.string()), length)
    return merge_throughput(replace(flow, namespace=together, queue=together))


def _read_runs(lake: Lake, first: date, namespace: str | None, *names: str) -> Iterator[pa.Table]:
    """Yield the runs that ended from a day on, a file at a time; no rows if there is none."""
    since = pc.field("ended") >= pa.scalar(datetime(first.year, first.month, first.day, tzinfo=UTC))
    files = files_since(lake, "silver/runs", first, namespace)
    for some in [[each] for each in files] or [[]]:
        yield read_rows(lake, "silver/runs", some, names, since)


def _fine_flow(lake: Lake, first: date, namespace: str | None, width: int) -> pa.Table:
    """Return the throughput in slots of less than a minute, from the runs themselves."""
    names = ("namespace", "queue", "attempt", "put", "popped", "ended", "how")
    parts = (throughput(runs, width) for runs in _read_runs(lake, first, namespace, *names))
    flow = _add_queues(pa.concat_tables([each.select(_OF_FLOW) for each in parts]))
    return flow.filter(pc.greater_equal(array(flow["date"]), pa.scalar(first)))


def _bands(
    lake: Lake, first: date, namespace: str | None, width: int
) -> dict[str, list[tuple[float, int, list[float]]]]:
    """Return the quantiles of each slot, by kind."""
    parts: dict[str, list[pa.Table]] = {"wait": [], "run": []}
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC)
    for runs in _read_runs(lake, first, namespace, "popped", "ended", "how", "wait", "run"):
        done = pc.is_in(array(runs["how"]), pa.array(DONE))
        for kind, at, kept in (("wait", "popped", None), ("run", "ended", done)):
            some = runs.filter(
                pc.is_valid(array(runs[kind]))
                if kept is None
                else pc.and_(kept, pc.is_valid(array(runs[kind])))
            )
            some = some.filter(pc.greater_equal(array(some[at]), pa.scalar(begin)))
            slots = pa.table({"at": _slots(some[at], width), "seconds": some[kind]})
            parts[kind].append(cells(slots, ["at"]))
    found = {}
    for kind, tables in parts.items():
        slots = merged(pa.concat_tables(tables), ["at"])
        found[kind] = _quantiles(slots, numbers(slots["at"]).astype(float))
    return found


def _daily(times: pa.Table) -> list[tuple[float, int, list[float]]]:
    return _quantiles(times, numbers(day_numbers(times["date"])) * float(DAY))


def _quantiles(cells: pa.Table, moments: Floats) -> list[tuple[float, int, list[float]]]:
    rows = zip(
        moments.tolist(), cells["count"].to_pylist(), quantiles(cells, RANKS).tolist(), strict=True
    )
    return sorted(rows)


def _slots(times: pa.ChunkedArray, width: int) -> pa.Array:
    """Return the beginning of the slot of each time, in seconds."""
    return pa.array(numbers(micros(times)) // (width * MICROS) * width)


def _flow(flow: pa.Table, width: int) -> list[dict[str, Any]]:
    """What was done in each slot, of all queues; what waited and ran is a mean over the time."""
    slots = pa.table({"at": _slots(flow["start"], width)})
    groups = Groups(slots, ["at"])
    share = numbers(flow["seconds"]) / width
    sums = {name: groups.sum(numbers(flow[name])) for name in _DONE_IN_SLOT}
    sums |= {name: groups.sum(numbers(flow[name]) * share) for name in ("waiting", "running")}
    table = replace(groups.keys, **{name: pa.array(values) for name, values in sums.items()})
    return without_gaps([row | {"at": float(row["at"])} for row in table.to_pylist()], width)


def without_gaps(slots: list[dict[str, Any]], width: int) -> list[dict[str, Any]]:
    """The slots by time, with those between in which nothing was done, waited or ran."""
    known = {round(slot["at"]): slot for slot in slots}
    return (
        [
            known.get(at) or dict.fromkeys(slots[0], 0) | {"at": at}
            for at in range(min(known), max(known) + 1, width)
        ]
        if known
        else []
    )


def _week(flow: pa.Table) -> list[list[int]]:
    hours = numbers(micros(flow["start"])) // (3600 * MICROS)
    ended = numbers(flow["completed"]) + numbers(flow["failed"])
    weekdays = (hours // 24 + 3) % 7  # the first day of the epoch was a Thursday
    total = np.zeros((7, 24), np.int64)
    np.add.at(total, (weekdays, hours % 24), ended)
    week: list[list[int]] = total.tolist()
    return week


def _failures(failures: pa.Table) -> list[dict[str, Any]]:
    """The groups that failed most: with each day's number, to show where it goes."""
    length = failures.num_rows
    if not length:
        return []
    one_day = pa.repeat(pa.scalar(date(1970, 1, 1)), length)
    one = pa.repeat(pa.scalar("", pa.string()), length)
    totals = merge_failures(replace(failures, namespace=one, queue=one, date=one_day))
    most = sorted(
        totals.to_pylist(),
        key=lambda row: (-row["count"], -row["retried"], row["failure_group"]),
    )[:GROUPS]
    shown = {row["failure_group"]: row | {"days": []} for row in most}
    for row in failures.to_pylist():
        if group := shown.get(row["failure_group"]):
            group["days"].append({"date": row["date"], "by_hour": row["by_hour"]})
            group["samples"] = group["samples"][:3]
    return list(shown.values())


def _paths(paths: pa.Table) -> list[dict[str, Any]]:
    """The longest; one that is the beginning of another one is left out."""
    order = [("seconds", "descending"), ("jid", "ascending")]
    found = paths.sort_by(order).slice(0, 4 * PATHS).to_pylist()
    inner = {(row["namespace"], step["jid"]) for row in found for step in row["steps"][:-1]}
    return [row for row in found if (row["namespace"], row["jid"]) not in inner][:PATHS]
