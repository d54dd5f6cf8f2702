"""The numbers that the report shows: few and plain, whatever the size of the lake."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from aioqless.contrib.lake.database import fetch, open_lake_database, read_sql
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.report.charts import Slot
from aioqless.contrib.lake.schema import COUNTS
from aioqless.contrib.lake.snapshot import whole_of
from aioqless.contrib.lake.statistics import Period, add_up

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TOP: Final = 12  # rows of a table; the others are one row
MAX_PATHS: Final = 6
MAX_SAMPLES: Final = 3
PATH_DAYS: Final = 30  # how many days back a path is followed
DAY: Final = 86_400  # seconds
_SLOTS: Final = 90  # on a time axis, at most
_WEEK: Final = 7 * DAY
_WIDTHS: Final = (
    *(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10_800, 21_600, 43_200),
    *(DAY, _WEEK, 5 * _WEEK),
)  # seconds of a slot; those within a day divide it
_MONDAY: Final = 4 * DAY  # the first one since the epoch
_EDGES: Final = tuple(10 ** (exponent / 8) for exponent in range(-32, 57))  # 0.1 ms to 10^7 s
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
    names = ("klasses", "failures", "throughput", "runs")
    with open_lake_database(lake, names, namespace=namespace) as database:
        reader = _Reader(database, period, queue)
        total = reader.read_total(period)
        if not any(total[name] for name in COUNTS):
            return None
        report = Report(period, reader.list_namespaces(), queue, total=total)
        before = reader.read_total(period.before)
        report.before = before if any(before[name] for name in COUNTS) else None
        report.part = "klass" if queue else "queue"
        report.groups = reader.read_groups(report.part)
        report.klasses, report.faster = reader.read_slowest()
        report.histograms = {
            kind: _count_bars(total[kind]["log_bins"]) if kind in total else []
            for kind in ("wait", "run")
        }
        report.width = reader.choose_width()
        report.flow = fill_gaps(reader.read_flow(report.width), report.width)
        report.week = reader.count_week()
        report.slots = {kind: reader.read_slots(kind, report.width) for kind in ("wait", "run")}
        report.failures = reader.read_failures()
    first = period.first - timedelta(days=PATH_DAYS)
    with open_lake_database(
        lake, ["paths"], namespace=namespace, dates=(first, period.last)
    ) as database:
        report.paths = _Reader(database, period, queue).read_paths()
    return report


def fill_gaps(slots: Sequence[dict[str, Any]], width: int) -> list[dict[str, Any]]:
    """Return slots in the order of time, with empty ones for those that are missing between."""
    if not slots:
        return []
    known = {round(slot["at"]): slot for slot in slots}
    empty = dict.fromkeys(slots[0], 0)
    return [known.get(at) or empty | {"at": at} for at in range(min(known), max(known) + 1, width)]


class _Reader:
    """Reads the numbers of a period, of one queue or of all."""

    def __init__(self, database: DuckDBPyConnection, period: Period, queue: str | None) -> None:
        self._database = database
        self._period = period
        self._queue = queue

    def _where(self, period: Period | None = None) -> str:
        days = period or self._period
        where = f"date BETWEEN DATE '{days.first}' AND DATE '{days.last}'"
        return where if self._queue is None else f"{where} AND queue = $queue"

    def _fetch(self, query: str, **values: Any) -> list[dict[str, Any]]:
        if self._queue is not None:
            values["queue"] = self._queue
        return fetch(self._database, query, values)

    def _add_up(
        self, *keys: str, period: Period | None = None, **values: Any
    ) -> list[dict[str, Any]]:
        if self._queue is not None:
            values["queue"] = self._queue
        return add_up(self._database, "klasses", keys, self._where(period), values)

    def list_namespaces(self) -> list[str]:
        found = self._fetch(f"SELECT DISTINCT namespace FROM klasses WHERE {self._where()}")
        return sorted({whole_of(each["namespace"]) for each in found})

    def read_total(self, period: Period) -> dict[str, Any]:
        rows = self._add_up(period=period)
        return rows[0] if rows else dict.fromkeys(COUNTS, 0)

    def read_groups(self, part: str) -> list[dict[str, Any]]:
        """Return the busiest groups, with their runs in the period before, and the others."""
        runs = f"SELECT {part} AS name, sum(runs)::BIGINT AS runs FROM klasses WHERE"
        order = "GROUP BY 1 ORDER BY runs DESC, name"
        names = [each["name"] for each in self._fetch(f"{runs} {self._where()} {order}")]
        shown = names[:TOP] if len(names) > TOP + 1 else names
        earlier = self._fetch(f"{runs} {self._where(self._period.before)} {order}")
        before = {each["name"]: each["runs"] for each in earlier}
        rows = self._add_up(f"if(list_contains($shown, {part}), {part}, NULL)", shown=shown)
        for row in rows:
            (row[part],) = row.pop("key")
            row["before"] = before.get(row[part], 0)
            if row[part] is None:
                row["others"] = len(names) - len(shown)
                row["before"] = sum(before.values()) - sum(before.get(name, 0) for name in shown)
        return sorted(rows, key=lambda row: "others" in row)

    def read_slowest(self) -> tuple[list[dict[str, Any]], int]:
        rows = [row | {"klass": row["key"][0]} for row in self._add_up("klass") if "run" in row]
        rows.sort(key=lambda row: -row["run"]["p95"])
        return rows[:TOP], len(rows[TOP:])

    def _inside(self, moment: str) -> str:
        """Return the condition that a moment is in the period."""
        start, end = self._period.start.isoformat(), self._period.end.isoformat()
        queue = "" if self._queue is None else " AND queue = $queue"
        return f"{moment} >= TIMESTAMPTZ '{start}' AND {moment} < TIMESTAMPTZ '{end}'{queue}"

    def choose_width(self) -> int:
        """Return the width of a slot with which a time axis has enough of them, not too many."""
        (row,) = self._fetch(
            "SELECT (epoch_us(max(start)) - epoch_us(min(start))) / 1e6 + 60 AS span "
            f"FROM throughput WHERE {self._inside('start')}"
        )
        if row["span"] is None:
            return DAY
        return next((width for width in _WIDTHS if row["span"] / width <= _SLOTS), _WIDTHS[-1])

    def read_flow(self, width: int) -> list[dict[str, Any]]:
        """Return what ended in each slot; levels are means over the time of the slot."""
        minutes = "throughput"
        if width < 60:
            minutes = f"({read_sql('throughput', micros=width * 1_000_000)})"
        sums = [f"sum({name})::BIGINT AS {name}" for name in _MOMENTS]
        sums += [f"sum({name} * seconds) / {width} AS {name}" for name in _LEVELS]
        return self._fetch(
            f"SELECT {_slot('start', width)} AS at, {', '.join(sums)} FROM {minutes} "
            f"WHERE {self._inside('start')} GROUP BY 1 ORDER BY 1"
        )

    def count_week(self) -> list[list[int]]:
        found = self._fetch(
            f"SELECT (epoch_us(start) // 1000000 - {_MONDAY}) // 3600 % 168 AS hour, "
            "sum(completed + failed)::BIGINT AS ended FROM throughput "
            f"WHERE {self._inside('start')} GROUP BY 1"
        )
        by_hour = {row["hour"]: row["ended"] for row in found}
        return [[by_hour.get(24 * day + hour, 0) for hour in range(24)] for day in range(7)]

    def read_slots(self, kind: str, width: int) -> list[Slot]:
        """Return the quantiles of each slot."""
        moment = "popped" if kind == "wait" else "ended"
        done = "" if kind == "wait" else " AND how IN ('complete', 'advance')"
        found = self._fetch(
            f"SELECT {_slot(moment, width)}::DOUBLE AS at, count({kind}) AS number, "
            f"quantile_disc({kind}, [0.5, 0.9, 0.99]) AS ranks FROM runs "
            f"WHERE {kind} IS NOT NULL AND {self._inside(moment)}{done} GROUP BY 1 ORDER BY 1"
        )
        return [Slot(row["at"], row["number"], row["ranks"]) for row in found]

    def read_failures(self) -> list[dict[str, Any]]:
        """Return the groups that failed most, with each day's numbers, and the others."""
        order = "ORDER BY count DESC, retried DESC, failure_group"
        rows = self._fetch(
            "SELECT failure_group, sum(count)::BIGINT AS count, sum(retried)::BIGINT AS retried, "
            "min(first_seen) AS first_seen, max(last_seen) AS last_seen, "
            "list_sort(list_distinct(flatten(list(klasses)))) AS klasses, "
            "list({'date': date, 'by_hour': by_hour}) AS days, "
            "flatten(list(samples)) AS samples "
            f"FROM failures WHERE {self._where()} GROUP BY failure_group {order}"
        )
        for row in rows:
            row["samples"].sort(key=lambda each: (each["final"], each["ended"]), reverse=True)
            row["samples"] = row["samples"][:MAX_SAMPLES]
        if len(rows) <= TOP + 1:
            return rows
        others = rows[TOP:]
        return [
            *rows[:TOP],
            {
                "failure_group": f"{len(others)} other groups",
                "count": sum(row["count"] for row in others),
                "retried": sum(row["retried"] for row in others),
                "first_seen": min(row["first_seen"] for row in others),
                "last_seen": max(row["last_seen"] for row in others),
                "klasses": [],
                "days": [day for row in others for day in row["days"]],
                "samples": [],
            },
        ]

    def read_paths(self) -> list[dict[str, Any]]:
        """Return the longest paths; a path that begins a longer one is left out."""
        longest = self._fetch(
            f"SELECT * FROM paths WHERE {self._where()} "
            f"ORDER BY seconds DESC, jid LIMIT {4 * MAX_PATHS}"
        )
        return _leave_out_beginnings(longest)[:MAX_PATHS]


def _count_bars(log_bins: Mapping[int, int]) -> list[tuple[float, float, float]]:
    """Return how many durations are in each bin; bins grow by the same factor, eight a decade."""
    bounds = (0.0, *_EDGES, _EDGES[-1] * 10 ** (1 / 8))
    numbers = [0] * (len(bounds) - 1)
    for bin, number in log_bins.items():
        numbers[bisect_right(_EDGES, min(2 ** ((bin + 0.5) / 64), _EDGES[-1]))] += number
    filled = [index for index, number in enumerate(numbers) if number]
    bars = [(*edges, float(many)) for edges, many in zip(pairwise(bounds), numbers, strict=True)]
    return bars[filled[0] : filled[-1] + 1]


def _slot(moment: str, width: int) -> str:
    """Return the beginning of a moment's slot in seconds, as SQL; weeks begin on Monday."""
    shift = _MONDAY if width > DAY else 0
    return f"((epoch_us({moment}) // 1000000 - {shift}) // {width} * {width} + {shift})"


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
