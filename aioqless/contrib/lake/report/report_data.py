"""The numbers that the report shows: few and plain, whatever the size of the lake."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lake_reader import rows
from aioqless.contrib.lake.statistics import chosen, statistics
from aioqless.contrib.lake.tables.aggregates import merged
from aioqless.contrib.lake.tables.days import DAY
from aioqless.contrib.lake.tables.throughput import throughput

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


def gather(
    spark: SparkSession, lake: Lake, first: date, namespace: str | None = None
) -> Gathered | None:
    """The numbers of the days from `first` on; None if nothing ran or ended in them."""
    days = chosen(lake, "gold/times", first, namespace)
    told = [*days, *chosen(lake, "gold/counts", first, namespace)]  # what never ran has no times
    total = statistics(spark, lake, first, "", namespace) if told else []
    if not total:
        return None
    report = Gathered(
        min(each.date for each in told),
        max(each.date for each in told),
        sorted({each.namespace for each in told}),
    )
    (report.total,) = total
    report.queues = statistics(spark, lake, first, "queue", namespace)
    report.klasses = statistics(spark, lake, first, "klass", namespace)
    times = rows(spark, lake, "gold/times", days).where("by = ''")
    report.histograms = {
        kind: _histogram(times.where(F.col("kind") == kind)) for kind in ("wait", "run")
    }
    flow = rows(spark, lake, "gold/throughput", chosen(lake, "gold/throughput", first, namespace))
    began, ended = _span(flow)
    report.width = next((width for width in WIDTHS if (ended - began) / width <= SLOTS), DAY)
    is_short = (report.last - report.first).days < SHORT
    runs = rows(spark, lake, "silver/runs", chosen(lake, "silver/runs", first, namespace)).where(
        F.col("ended") >= F.lit(first)
    )
    if is_short:
        flow_ = (
            throughput(runs, min(report.width, 3600)).where(F.col("date") >= F.lit(first))
            if report.width < 60
            else flow
        )
        report.bands = {kind: _bands(runs, kind, first, report.width) for kind in ("wait", "run")}
    else:
        report.width, flow_ = max(report.width, 3600), flow
        report.bands = {
            kind: _daily(times.where(F.col("kind") == kind)) for kind in ("wait", "run")
        }
    report.flow = _flow(flow_, report.width)
    report.week = _week(flow)
    report.failures = _failures(
        rows(spark, lake, "gold/failures", chosen(lake, "gold/failures", first, namespace))
    )
    report.paths = _paths(
        rows(spark, lake, "gold/paths", chosen(lake, "gold/paths", first, namespace))
    )
    return report


def _histogram(times: DataFrame) -> list[tuple[float, float, float]]:
    """Of all days, in bins that grow by the same factor: out of the sketches, so those of seconds
    don't have to be fine enough."""
    edges = ", ".join(f"{edge!r}D" for edge in EDGES)
    cell = (
        merged(times, ["kind"])
        .select(
            "count", F.expr(f"kll_sketch_get_rank_double(sketch, array({edges}))").alias("ranks")
        )
        .collect()
    )
    if not cell:
        return []
    count, ranks = cell[0]["count"], [0.0, *cell[0]["ranks"], 1.0]
    bounds = (0.0, *EDGES, EDGES[-1] * 10 ** (1 / 8))
    bars = [
        (low, high, count * (above - below))
        for (low, high), (below, above) in zip(pairwise(bounds), pairwise(ranks), strict=True)
    ]
    filled = [number for number, (_, _, many) in enumerate(bars) if many > 0]
    return bars[filled[0] : filled[-1] + 1]


def _span(flow: DataFrame) -> tuple[float, float]:
    (row,) = flow.agg(F.min("start").alias("first"), F.max("start").alias("last")).collect()
    now = datetime.now(UTC)
    return (row["first"] or now).timestamp(), (row["last"] or now).timestamp() + 60


def _slot(time: str, width: int) -> Any:
    return (F.floor(F.unix_micros(time) / (width * 1_000_000)) * width).cast("double")


def _bands(
    runs: DataFrame, kind: str, first: date, width: int
) -> list[tuple[float, int, list[float]]]:
    ended = "popped" if kind == "wait" else "ended"
    known = runs.where(F.col(kind).isNotNull() & (F.col(ended) >= F.lit(first))).where(
        "TRUE" if kind == "wait" else "how IN ('complete', 'advance')"
    )
    slots = known.groupBy(_slot(ended, width).alias("at")).agg(
        F.count("*").alias("n"), F.percentile_approx(kind, list(RANKS), 1000).alias("q")
    )
    return sorted((row["at"], row["n"], list(row["q"])) for row in slots.collect())


def _daily(times: DataFrame) -> list[tuple[float, int, list[float]]]:
    ranks = F.expr(
        f"kll_sketch_get_quantile_double(sketch, array({', '.join(f'{rank}D' for rank in RANKS)}))"
    )
    found = (
        merged(times, ["date"])
        .select((F.unix_date("date") * DAY).cast("double").alias("at"), "count", ranks.alias("q"))
        .collect()
    )
    return sorted((row["at"], row["count"], list(row["q"])) for row in found)


def _flow(flow: DataFrame, width: int) -> list[dict[str, Any]]:
    """What was done in each slot, of all queues; what waited and ran is a mean over the time."""
    share = F.col("seconds") / width
    slots = flow.groupBy(_slot("start", width).alias("at")).agg(
        *(F.sum(name).alias(name) for name in ("put", "completed", "failed", "retried")),
        *(F.sum(F.col(name) * share).alias(name) for name in ("waiting", "running")),
    )
    return without_gaps([row.asDict() for row in slots.collect()], width)


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


def _week(flow: DataFrame) -> list[list[int]]:
    hours = flow.groupBy(F.weekday("date").alias("day"), F.hour("start").alias("hour")).agg(
        F.sum(F.col("completed") + F.col("failed")).alias("n")
    )
    week = [[0] * 24 for _ in range(7)]
    for row in hours.collect():
        week[row["day"]][row["hour"]] = row["n"]
    return week


def _failures(failures: DataFrame) -> list[dict[str, Any]]:
    """The groups that failed most: with each day's number, to show where it goes."""
    found = failures.groupBy("group").agg(
        *(F.sum(name).alias(name) for name in ("count", "retried")),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("klasses")))).alias("klasses"),
        F.collect_list(F.struct(F.col("date"), F.col("by_hour"))).alias("days"),
        F.slice(F.sort_array(F.flatten(F.collect_list("samples")), asc=False), 1, 3).alias(
            "samples"
        ),
    )
    return [
        row.asDict(recursive=True)
        for row in found.orderBy(F.desc("count"), F.desc("retried"), "group")
        .limit(GROUPS)
        .collect()
    ]


def _paths(paths: DataFrame) -> list[dict[str, Any]]:
    """The longest; one that is the beginning of another one is left out."""
    found = [
        row.asDict(recursive=True)
        for row in paths.orderBy(F.desc("seconds"), "jid").limit(4 * PATHS).collect()
    ]
    inner = {(row["namespace"], step["jid"]) for row in found for step in row["steps"][:-1]}
    return [row for row in found if (row["namespace"], row["jid"]) not in inner][:PATHS]
