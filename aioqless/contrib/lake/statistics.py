"""How long jobs waited and ran and how they ended, over some days: the table `times` and `counts`
merged by what is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from aioqless.contrib.lake.lake import Lake, Partition
from aioqless.contrib.lake.lake_reader import rows
from aioqless.contrib.lake.tables.counts import ENDS, RUNS
from aioqless.contrib.lake.tables.groups import known
from aioqless.contrib.lake.tables.times import merged_times

NUMBERS = (*ENDS, "runs", *RUNS)
OF_TIMES = ("count", "mean", "variance", "least", "most", "p50", "p90", "p95", "p99", "bins")


def since(text: str) -> date:
    """The first day of a span: `2026-11-21`, `today`, or `7d`, which is today and the six days
    before. Raises ValueError."""
    today = datetime.now(UTC).date()
    if text == "today":
        return today
    if text.endswith("d") and text[:-1].isdecimal() and 0 < int(text[:-1]) < 36_500:
        return today - timedelta(days=int(text[:-1]) - 1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--since {text!r} is no day: give 2026-11-21, today, or 7d; statistics are kept by the day, of UTC"
        ) from None


def chosen(lake: Lake, table: str, first: date, namespace: str | None = None) -> list[Partition]:
    """The partitions of a table from a day on, of one namespace or of all."""
    return [each for each in lake.partitions(table, namespace) if each.date >= first]


def statistics(
    spark: SparkSession, lake: Lake, first: date, by: str, namespace: str | None = None
) -> list[dict[str, Any]]:
    """One row for each group, the busiest first: the parts of `by`, the counts, and `wait`, `run`
    and `spent` as tables of numbers.

    Raises ValueError for a grouping that isn't kept.
    """
    grouping = known(by)
    parts = [part for part in grouping.split(",") if part]
    of_times = rows(spark, lake, "gold/times", chosen(lake, "gold/times", first, namespace)).where(
        F.col("by") == grouping
    )
    of_counts = rows(
        spark, lake, "gold/counts", chosen(lake, "gold/counts", first, namespace)
    ).where(F.col("by") == grouping)
    counted = (
        of_counts.groupBy(*parts).agg(*(F.sum(name).alias(name) for name in NUMBERS)).collect()
    )
    found = {
        _key(row, parts): _named(row, parts) | {name: row[name] or 0 for name in NUMBERS}
        for row in counted
    }
    for row in merged_times(of_times, parts).collect():
        group = found.setdefault(_key(row, parts), _named(row, parts) | dict.fromkeys(NUMBERS, 0))
        group[row["kind"]] = {name: row[name] for name in OF_TIMES}
    return sorted(
        (row for row in found.values() if any(row[name] for name in NUMBERS)),
        key=lambda row: -row["runs"],
    )


def _key(row: Any, parts: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[part] for part in parts)


def _named(row: Any, parts: Sequence[str]) -> dict[str, Any]:
    return {part: row[part] for part in parts}
