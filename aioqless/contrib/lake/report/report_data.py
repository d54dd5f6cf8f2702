"""The numbers that the report shows: few and plain, whatever the size of the lake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lake_reader import read_rows
from aioqless.contrib.lake.report.charts import Slot
from aioqless.contrib.lake.snapshot import whole_of
from aioqless.contrib.lake.statistics import (
    Period,
    list_files,
    read_counts,
    read_statistics,
    read_times,
)
from aioqless.contrib.lake.tables.aggregates import cells, merged, quantiles
from aioqless.contrib.lake.tables.bins import logarithmic_middle
from aioqless.contrib.lake.tables.columns import (
    DAY,
    MICROS,
    day_numbers,
    entries,
    micros,
    numbers,
)
from aioqless.contrib.lake.tables.counts import NUMBERS
from aioqless.contrib.lake.tables.throughput import throughput

TOP: Final = 12  # rows of a table; the others are one row
MAX_PATHS: Final = 6
MAX_SAMPLES: Final = 3
DETAILED_RUNS: Final = 5_000_000  # more of them are shown by the day, not read one by one
_SLOTS: Final = 90  # on a time axis, at most
_WEEK: Final = 7 * DAY
_WIDTHS: Final = (
    *(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10_800, 21_600, 43_200),
    *(DAY, _WEEK, 5 * _WEEK),
)  # seconds of a slot; those within a day divide it
_MONDAY: Final = 4 * DAY  # the first one since the epoch
_EDGES: Final = tuple(10 ** (exponent / 8) for exponent in range(-32, 57))  # 0.1 ms to 10^7 s
_RANKS: Final = (0.5, 0.9, 0.99)
_DONE: Final = ("complete", "advance")
_MOMENTS: Final = ("put", "completed", "failed", "retried")
_LEVELS: Final = ("waiting", "running")


@dataclass
class Report:
    """What the page shows. Durations are seconds, moments seconds since the epoch."""

    period: Period
    namespaces: list[str]
    queue: str | None = None
    width: int = DAY  # seconds of a slot of `flow` and `slots`
    total: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] | None = None  # the total of the period before
    part: str = "queue"  # what `groups` are: queues, or the classes of one queue
    groups: list[dict[str, Any]] = field(default_factory=list)
    klasses: list[dict[str, Any]] = field(default_factory=list)  # the slowest
    faster: int = 0  # how many other classes there are
    histograms: dict[str, list[tuple[float, float, float]]] = field(
        default_factory=dict
    )  # by kind: from, to, how many
    slots: dict[str, list[Slot]] = field(default_factory=dict)  # by kind
    flow: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    week: list[list[int]] = field(default_factory=list)  # by weekday, from Monday, and hour
    paths: list[dict[str, Any]] = field(default_factory=list)


def read_report(
    lake: Lake, period: Period, namespace: str | None = None, queue: str | None = None
) -> Report | None:
    """Return the numbers of a period, of one queue or of all; None if nothing ended in it."""
    total = _read_total(lake, period, namespace, queue)
    if not any(total[name] for name in NUMBERS):
        return None
    files = list_files(lake, "gold/counts", period, namespace)
    namespaces = sorted({whole_of(each.namespace) for each in files})
    report = Report(period, namespaces, queue, total=total)
    before = _read_total(lake, period.before, namespace, queue)
    report.before = before if any(before[name] for name in NUMBERS) else None
    report.part = "klass" if queue else "queue"
    report.groups = _read_groups(lake, report, namespace)
    report.klasses, report.faster = _read_slowest(lake, period, namespace, queue)
    grouping, where = ("queue", pc.field("queue") == queue) if queue else ("", None)
    times = read_times(lake, period, grouping, ["date", "kind"], namespace, where)
    report.histograms = {kind: _count_bars(_of_kind(times, kind)) for kind in ("wait", "run")}
    flow = _read_minutes(lake, period, namespace, queue)
    report.width = _choose_width(flow)
    report.week = _count_week(flow)
    if total["runs"] <= DETAILED_RUNS:
        report.flow, report.slots = _read_runs(lake, report, flow, namespace)
    else:
        report.width = max(report.width, DAY)
        report.slots = {
            kind: _describe_slots(_by_day(times, kind, report.width)) for kind in ("wait", "run")
        }
    report.flow = report.flow or fill_gaps(_sum_flow(flow, report.width), report.width)
    report.failures = _read_failures(lake, period, namespace, queue)
    report.paths = _read_paths(lake, period, namespace, queue)
    return report


def fill_gaps(slots: Sequence[dict[str, Any]], width: int) -> list[dict[str, Any]]:
    """Return slots in the order of time, with empty ones for those that are missing between."""
    if not slots:
        return []
    known = {round(slot["at"]): slot for slot in slots}
    empty = dict.fromkeys(slots[0], 0)
    return [known.get(at) or empty | {"at": at} for at in range(min(known), max(known) + 1, width)]


def _read_total(
    lake: Lake, period: Period, namespace: str | None, queue: str | None
) -> dict[str, Any]:
    rows = read_statistics(lake, period, "queue" if queue else "", namespace, queue=queue)
    return rows[0] if rows else dict.fromkeys(NUMBERS, 0)


def _read_groups(lake: Lake, report: Report, namespace: str | None) -> list[dict[str, Any]]:
    """Return the busiest groups, with their runs in the period before, and one of the others."""
    grouping = "queue,klass" if report.queue else "queue"
    period, queue, part = report.period, report.queue, report.part
    rows = read_statistics(lake, period, grouping, namespace, queue=queue, top=TOP)
    where = pc.field("queue") == queue if queue else None
    counts = read_counts(lake, period.before, grouping, [part], namespace, where)
    before = {row[part]: row["runs"] for row in counts.to_pylist()}
    named = [row[part] for row in rows if row[part] is not None]
    for row in rows:
        if row[part] is None:
            row["before"] = sum(before.values()) - sum(before.get(name, 0) for name in named)
        else:
            row["before"] = before.get(row[part], 0)
    return rows


def _read_slowest(
    lake: Lake, period: Period, namespace: str | None, queue: str | None
) -> tuple[list[dict[str, Any]], int]:
    grouping = "queue,klass" if queue else "klass"
    rows = [
        row
        for row in read_statistics(lake, period, grouping, namespace, queue=queue)
        if "run" in row
    ]
    rows.sort(key=lambda row: -row["run"]["p95"])
    return rows[:TOP], len(rows[TOP:])


def _of_kind(times: pa.Table, kind: str) -> pa.Table:
    return times.filter(pc.equal(times["kind"], kind))


def _count_bars(times: pa.Table) -> list[tuple[float, float, float]]:
    """Return how many durations are in each bin; bins grow by the same factor, eight a decade."""
    _, bins, counts = entries(times["log_bins"])
    if not len(bins):
        return []
    bounds = (0.0, *_EDGES, _EDGES[-1] * 10 ** (1 / 8))
    middles = np.minimum(logarithmic_middle(numbers(bins)), _EDGES[-1])
    number, _ = np.histogram(middles, bounds, weights=numbers(counts))
    filled = np.flatnonzero(number)
    bars = [(low, high, many) for (low, high), many in zip(pairwise(bounds), number, strict=True)]
    return [(low, high, float(many)) for low, high, many in bars[filled[0] : filled[-1] + 1]]


def _read_minutes(lake: Lake, period: Period, namespace: str | None, queue: str | None) -> pa.Table:
    """Return the throughput of each minute, of all queues together."""
    files = list_files(lake, "gold/throughput", period, namespace)
    where = pc.field("queue") == queue if queue else None
    columns = ("start", "seconds", *_MOMENTS, *_LEVELS)
    return read_rows(lake, "gold/throughput", files, columns, where, _add_minutes)


def _add_minutes(rows: pa.Table) -> pa.Table:
    sums = [(name, "sum") for name in (*_MOMENTS, *_LEVELS)]
    added = rows.group_by("start").aggregate([("seconds", "max"), *sums])
    names = ("seconds", *_MOMENTS, *_LEVELS)
    return pa.table({"start": added["start"]} | dict(zip(names, added.columns[1:], strict=True)))


def _choose_width(flow: pa.Table) -> int:
    """Return the width of a slot with which a time axis has enough of them, and not too many."""
    if not flow.num_rows:
        return DAY
    begin = numbers(micros(flow["start"])) // MICROS
    span = begin.max() + numbers(flow["seconds"]).max() - begin.min()
    return next((width for width in _WIDTHS if span / width <= _SLOTS), _WIDTHS[-1])


def _slot(moments: Any, width: int) -> Any:
    """Return the beginning of each moment's slot, in seconds; weeks begin on Monday."""
    shift = (_MONDAY if width > DAY else 0) * MICROS
    return ((moments - shift) // (width * MICROS) * width * MICROS + shift) // MICROS


def _sum_flow(flow: pa.Table, width: int) -> list[dict[str, Any]]:
    """Return what ended in each slot; levels are means over the time of the slot."""
    if not flow.num_rows:
        return []
    share = numbers(flow["seconds"]) / width
    columns = {name: numbers(flow[name]) for name in _MOMENTS}
    columns |= {name: numbers(flow[name]) * share for name in _LEVELS}
    at = _slot(numbers(micros(flow["start"])), width)
    summed = pa.table({"at": at, **columns}).group_by("at")
    names = list(columns)
    return [
        {"at": float(row["at"])} | {name: row[f"{name}_sum"] for name in names}
        for row in summed.aggregate([(name, "sum") for name in names]).to_pylist()
    ]


def _count_week(flow: pa.Table) -> list[list[int]]:
    hours = (numbers(micros(flow["start"])) - _MONDAY * MICROS) // (3600 * MICROS) % (7 * 24)
    done = numbers(flow["completed"]) + numbers(flow["failed"])
    counts = np.bincount(hours.astype(np.int64), done, 7 * 24).astype(int).tolist()
    return [counts[first : first + 24] for first in range(0, 7 * 24, 24)]


def _read_runs(
    lake: Lake, report: Report, flow: pa.Table, namespace: str | None
) -> tuple[list[dict[str, Any]], dict[str, list[Slot]]]:
    """Return what ended in each slot, if slots are shorter than a minute, and the quantiles."""
    files = list_files(lake, "silver/runs", report.period, namespace)
    where = pc.field("queue") == report.queue if report.queue else None
    columns = [
        *("namespace", "queue", "put", "popped", "ended", "wait", "run", "how", "attempt"),
        "date",
    ]
    found: dict[str, list[pa.Table]] = {"wait": [], "run": []}
    fine: list[pa.Table] = []
    for file in files:
        runs = read_rows(lake, "silver/runs", [file], columns, where)
        for kind, held in found.items():
            held[:] = [_merge_cells([*held, _cells_by_slot(runs, kind, report)])]
        if report.width < 60:
            fine.append(_add_minutes(throughput(runs, report.width).select(flow.column_names)))
    slots = {kind: _describe_slots(held[0] if held else None) for kind, held in found.items()}
    if not fine:
        return [], slots
    first = pa.scalar(report.period.start)
    rows = pa.concat_tables(fine)
    rows = rows.filter(pc.greater_equal(rows["start"], first))
    return fill_gaps(_sum_flow(rows, report.width), report.width), slots


def _cells_by_slot(runs: pa.Table, kind: str, report: Report) -> pa.Table:
    moment = "popped" if kind == "wait" else "ended"
    known = pc.and_(pc.is_valid(runs[kind]), pc.is_valid(runs[moment]))
    if kind == "run":
        known = pc.and_(known, pc.is_in(runs["how"], pa.array(_DONE)))
    rows = runs.filter(known)
    times = numbers(micros(rows[moment]))
    inside = (times >= report.period.start.timestamp() * MICROS) & (
        times < report.period.end.timestamp() * MICROS
    )
    at = _slot(times, report.width)
    return cells(pa.table({"at": at, "seconds": rows[kind]}).filter(pa.array(inside)), ["at"])


def _merge_cells(tables: Sequence[pa.Table]) -> pa.Table:
    return merged(pa.concat_tables(tables), ["at"]) if len(tables) > 1 else tables[0]


def _by_day(times: pa.Table, kind: str, width: int) -> pa.Table:
    """Return cells by slots of one or several days, out of those by day."""
    rows = _of_kind(times, kind)
    days = numbers(day_numbers(rows["date"])) * DAY * MICROS
    return merged(rows.append_column("at", pa.array(_slot(days, width))), ["at"])


def _describe_slots(found: pa.Table | None) -> list[Slot]:
    if found is None or not found.num_rows:
        return []
    ranks = quantiles(found, _RANKS).tolist()
    rows = zip(found["at"].to_pylist(), found["count"].to_pylist(), ranks, strict=True)
    return sorted((Slot(float(at), count, values) for at, count, values in rows), key=_at)


def _at(slot: Slot) -> float:
    return slot.at


def _read_failures(
    lake: Lake, period: Period, namespace: str | None, queue: str | None
) -> list[dict[str, Any]]:
    """Return the groups that failed most, with each day's numbers, and one row of the others."""
    files = list_files(lake, "gold/failures", period, namespace)
    where = pc.field("queue") == queue if queue else None
    groups: dict[str, dict[str, Any]] = {}
    for file in files:
        for row in read_rows(lake, "gold/failures", [file], None, where).to_pylist():
            _add_failure(groups.setdefault(row["failure_group"], _no_failures(row)), row)
    rows = sorted(
        groups.values(), key=lambda row: (-row["count"], -row["retried"], row["failure_group"])
    )
    rows = [row for row in rows if row["count"] or row["retried"]]
    if len(rows) <= TOP + 1:
        return rows
    others = _no_failures(rows[TOP])
    others["failure_group"] = f"{len(rows) - TOP} other groups"
    for row in rows[TOP:]:
        _add_failure(others, row)
    return [*rows[:TOP], others | {"samples": [], "klasses": []}]


def _no_failures(row: dict[str, Any]) -> dict[str, Any]:
    first_last = {name: row[name] for name in ("failure_group", "first_seen", "last_seen")}
    return first_last | {"count": 0, "retried": 0, "klasses": [], "samples": [], "days": []}


def _add_failure(group: dict[str, Any], row: dict[str, Any]) -> None:
    group["count"] += row["count"]
    group["retried"] += row["retried"]
    group["first_seen"] = min(group["first_seen"], row["first_seen"])
    group["last_seen"] = max(group["last_seen"], row["last_seen"])
    group["klasses"] = sorted({*group["klasses"], *row["klasses"]})
    samples = [*group["samples"], *row["samples"]]
    samples.sort(key=lambda each: (each.get("final") is not False, each["ended"]), reverse=True)
    group["samples"] = samples[:MAX_SAMPLES]
    own = row.get("days") or [{"date": row["date"], "by_hour": row["by_hour"]}]
    group["days"] += own


def _read_paths(
    lake: Lake, period: Period, namespace: str | None, queue: str | None
) -> list[dict[str, Any]]:
    """Return the longest paths, without those that are the beginning of another one."""
    files = list_files(lake, "gold/paths", period, namespace)
    where = pc.field("queue") == queue if queue else None
    order = [("seconds", "descending"), ("jid", "ascending")]
    longest = read_rows(
        lake,
        "gold/paths",
        files,
        None,
        where,
        lambda rows: rows.sort_by(order).slice(0, 4 * MAX_PATHS),
    )
    return _leave_out_beginnings(longest.to_pylist())[:MAX_PATHS]


def _leave_out_beginnings(paths: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = list(paths)
    inner = {(row["namespace"], step["jid"]) for row in rows for step in row["steps"][:-1]}
    return [row for row in rows if (row["namespace"], row["jid"]) not in inner]


def day_moment(day: Any) -> float:
    """Return the beginning of a day, in seconds since the epoch."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def count_by_slot(days: list[dict[str, Any]], period: Period, hours: int) -> list[int]:
    """Return the number of failures in each slot of some hours, from the first day on."""
    length = ((period.last - period.first) + timedelta(days=1)).days * 24
    counts = [0] * length
    for day in days:
        for hour, many in enumerate(day["by_hour"]):
            counts[24 * (day["date"] - period.first).days + hour] += many
    return [sum(counts[at : at + hours]) for at in range(0, length, hours)]
