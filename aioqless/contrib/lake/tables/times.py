"""gold/times: how long jobs waited and ran, per day and per queue, klass, tag, worker and what of
these is asked for together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.aggregates import cells, described, merged
from aioqless.contrib.lake.tables.bins import qless
from aioqless.contrib.lake.tables.days import day
from aioqless.contrib.lake.tables.groups import KEYS, PARTS, grouped

DONE: Final = ("complete", "advance")  # how runs end that Redis' own statistics count


def times(runs: DataFrame) -> DataFrame:
    """Seconds by `kind`: `wait` of every run, on the day it began; `run` of those that completed,
    `spent` of all others, on the day of their end. Redis' statistics have the first two, on the
    same days."""
    kind = F.when(F.col("how").isin(*DONE), "run").otherwise("spent")
    both = F.array(
        F.struct(
            F.lit("wait").alias("kind"), day("popped").alias("date"), F.col("wait").alias("seconds")
        ),
        F.struct(kind.alias("kind"), day("ended").alias("date"), F.col("run").alias("seconds")),
    )
    kept = (
        "namespace",
        "queue",
        "klass",
        "worker",
        F.array_sort(F.coalesce("tags", F.array().cast("array<string>"))).alias("tags"),
    )
    numbers = (
        runs.select(*kept, F.explode(both).alias("each"))
        .select("*", "each.*")
        .drop("each")
        .where("seconds IS NOT NULL")
    )
    finest = ("namespace", "date", "queue", "klass", "worker", "tags", "kind")
    keys = (*KEYS, "kind")
    return _table(merged(grouped(merged(cells(numbers, finest), finest)), keys))


def merged_times(times: DataFrame, keys: Sequence[str] = PARTS) -> DataFrame:
    """Rows of the table over all their days and namespaces as one for each group of `keys` and
    `kind`; of one `by` only."""
    return described(merged(times, (*keys, "kind")))


def _table(cells: DataFrame) -> DataFrame:
    return (
        described(cells)
        .withColumn("histogram", qless(F.col("bins")))
        .select(*TABLES["gold/times"].schema.names)
    )
