"""gold/counts: how stages of jobs and their runs ended, per day and grouping."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.days import day
from aioqless.contrib.lake.tables.groups import KEYS, grouped

ENDS: Final = {
    "completed": "complete",
    "advanced": "advance",
    "failed": "fail",
    "cancelled": "cancel",
    "moved": "move",
}
RUNS: Final = {
    "retried": "retried",
    "released": "released",
    "timed_out": "timed-out",
    "lost": "lost",
}


def counts(events: DataFrame) -> DataFrame:
    """How many stages ended in each way, and how many runs were begun and how many ended without
    ending the stage."""
    parts = ("namespace", "queue", "klass", "tags")
    ends = events.select(
        *parts,
        "worker",
        day("ended").alias("date"),
        F.lit(0).alias("ran"),
        F.col("what").alias("how"),
    )
    ran = events.select(*parts, F.explode("runs").alias("each")).select(
        *parts,
        "each.worker",
        day("each.ended").alias("date"),
        F.lit(1).alias("ran"),
        F.col("each.how").alias("how"),
    )
    finest = (
        ends.unionByName(ran)
        .groupBy(*parts, "worker", "date", "ran", "how")
        .agg(F.count("*").alias("n"))
    )
    how = F.col("how")
    totals = (
        grouped(finest)
        .groupBy(*KEYS)
        .agg(
            *(_sum((F.col("ran") == 0) & (how == what)).alias(name) for name, what in ENDS.items()),
            _sum(F.col("ran") == 1).alias("runs"),
            *(_sum((F.col("ran") == 1) & (how == what)).alias(name) for name, what in RUNS.items()),
        )
    )
    return totals.select(*TABLES["gold/counts"].schema.names)


def _sum(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("n")).otherwise(0)).cast("long")
