"""Brings the tables up to date with the events: makes anew what later events touch, and nothing
else. Running it again changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from aioqless.contrib.lake.lake import Lake, Partition
from aioqless.contrib.lake.lake_reader import rows
from aioqless.contrib.lake.refresh_state import EVENTS, Progress
from aioqless.contrib.lake.schema import PARTITIONS, TABLES
from aioqless.contrib.lake.tables import (
    counts,
    days_told,
    failures,
    jobs,
    paths,
    runs,
    stages,
    stages_of,
    throughput,
    times,
)
from aioqless.contrib.lake.transaction import Changes, changing, staged_partitions

RUNS, JOBS = "silver/runs", "silver/jobs"
PATH_DAYS: Final = 30  # a critical path is followed back to jobs that ended in these days before
_SORTED: Final = {RUNS: ("ended", "id", "attempt"), JOBS: ("state", "jid")}
_LARGEST: Final = 5_000_000  # rows of a file

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Refreshed:
    """What was made: of how many days of events, and tables of how many days."""

    events: int = 0
    days: int = 0


def refresh(
    spark: SparkSession, lake: Lake, tell: Tell = lambda _: None, *, anew: bool = False
) -> Refreshed:
    """Make tables of the events that came since the last time; `anew`: of all. `tell` hears how far
    it is.

    Raises LakeError if another process is at it.
    """
    with changing(lake, "tables") as changes:
        progress = Progress(lake)
        if anew or any(not name.startswith("bronze/") for name in lake.outdated()):
            progress.forget()
        files = {each: progress.files(each) for each in progress.changed()}
        if not files:
            return Refreshed()
        work = _Refreshing(spark, changes, tell)
        work.runs(list(files))
        work.jobs(list(files))
        days = work.days(list(files))
        touched = progress.touched(files, days)
        work.gold(touched, progress.telling_of(touched, days))
        progress.done(files, days)
        lake.updated(*(name for name in TABLES if not name.startswith("bronze/")))
        return Refreshed(len(files), len(touched))


class _Refreshing:
    def __init__(self, spark: SparkSession, changes: Changes, tell: Tell) -> None:
        self._spark = spark
        self._lake = changes.lake
        self._changes = changes
        self._tell = tell

    def runs(self, changed: list[Partition]) -> None:
        self._tell(f"runs, of {_days(changed)} of events")
        self._store(RUNS, runs(self._rows(EVENTS, changed)), _of(RUNS, changed))

    def jobs(self, changed: list[Partition]) -> None:
        """Jobs of the changed days, and jobs of other days of which these events tell: a failed one
        that was worked in the end."""
        self._tell("jobs")
        new = self._rows(EVENTS, changed)
        others = set(self._lake.partitions(JOBS)) - set(_of(JOBS, changed))
        known = self._rows(JOBS, others).join(
            new.select("namespace", "jid").distinct(), ["namespace", "jid"], "left_semi"
        )
        met = (
            [
                Partition(JOBS, row["namespace"], row["date"])
                for row in known.select(*PARTITIONS).distinct().collect()
            ]
            if others
            else []
        )
        affected = sorted({*_of(JOBS, changed), *met})
        old = stages_of(self._rows(JOBS, affected))
        kept = old.where(
            ~_among([(each.namespace, each.date) for each in changed], F.col("stage.date"))
        )
        self._store(JOBS, jobs(kept.unionByName(stages(new))), affected)

    def days(self, changed: list[Partition]) -> dict[Partition, list[date]]:
        """Of which days the events of each day tell: a job may wait and run for long."""
        found = (
            days_told(self._rows(EVENTS, changed))
            .groupBy(*PARTITIONS)
            .agg(F.collect_set("day").alias("days"))
            .collect()
        )
        return {Partition(EVENTS, row["namespace"], row["date"]): row["days"] for row in found}

    def gold(self, touched: set[tuple[str, date]], telling: list[Partition]) -> None:
        """The tables of these days, of all events that tell of them."""
        events, attempts = self._rows(EVENTS, telling), self._rows(RUNS, _of(RUNS, telling))
        made = {
            "gold/times": times(attempts),
            "gold/counts": counts(events),
            "gold/failures": failures(events),
            "gold/throughput": throughput(attempts),
            "gold/paths": paths(self._rows(JOBS, self._recent_jobs(touched))),
        }
        for number, (name, table) in enumerate(made.items(), 1):
            self._tell(f"{name.partition('/')[2]}, of {_days(touched)} ({number} of {len(made)})")
            self._store(
                name, table.where(_among(touched)), [Partition(name, *each) for each in touched]
            )

    def _recent_jobs(self, touched: set[tuple[str, date]]) -> list[Partition]:
        def near(each: Partition) -> bool:
            return any(
                name == each.namespace and (each.date - day).days >= -PATH_DAYS
                for name, day in touched
            )

        return [each for each in self._lake.partitions(JOBS) if near(each)]

    def _rows(self, table: str, partitions: Iterable[Partition]) -> DataFrame:
        return rows(self._spark, self._lake, table, partitions)

    def _store(self, name: str, table: DataFrame, partitions: Iterable[Partition]) -> None:
        """Let these partitions of a table be what it has of them, one after the other; those that
        it has nothing of are taken away."""
        folder = self._changes.folder()
        in_files = table.repartition(*PARTITIONS).sortWithinPartitions(
            *PARTITIONS, *_SORTED.get(name, ())
        )
        in_files.write.option("maxRecordsPerFile", _LARGEST).partitionBy(*PARTITIONS).parquet(
            str(folder)
        )
        staged = dict(staged_partitions(folder, name))
        for partition in partitions:
            self._changes.replace(partition, staged.get(partition))


def _of(table: str, partitions: Iterable[Partition]) -> list[Partition]:
    """The same days of another table."""
    return [Partition(table, each.namespace, each.date) for each in partitions]


def _among(days: Iterable[tuple[str, date]], of: Column | str = "date") -> Column:
    """Whether a row is of one of these namespaces and days."""
    by_name: dict[str, list[date]] = {}
    for namespace, each in days:
        by_name.setdefault(namespace, []).append(each)
    column = F.col(of) if isinstance(of, str) else of
    found = F.lit(False)
    for namespace, dates in by_name.items():
        found = found | ((F.col("namespace") == namespace) & column.isin(*dates))
    return found


def _days(those: Iterable[object]) -> str:
    number = len(list(those))
    return f"{number} day{'' if number == 1 else 's'}"
