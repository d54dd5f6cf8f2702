"""The lake's tables as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from aioqless.contrib.lake.lake import Lake, Partition
from aioqless.contrib.lake.schema import TABLES

VIEWS: Final = {
    name.partition("/")[2]: name for name in TABLES if not name.startswith("quarantine")
} | {"unreadable": "quarantine/events"}


def rows(
    spark: SparkSession, lake: Lake, table: str, partitions: Iterable[Partition] | None = None
) -> DataFrame:
    """The rows of a table's partitions; of all of them, unless some are given. Only their folders
    are looked into."""
    chosen = (
        lake.partitions(table)
        if partitions is None
        else [each for each in partitions if lake.files(each)]
    )
    schema = TABLES[table].schema
    if not chosen:
        return spark.createDataFrame([], schema)
    folders = [str(lake.root / each.folder) for each in chosen]
    return spark.read.schema(schema).option("basePath", str(lake.path(table))).parquet(*folders)


def name_views(spark: SparkSession, lake: Lake) -> list[str]:
    """Make every table known to SQL by its name: jobs, runs, events, times, and so on. Returns the
    names."""
    for view, table in VIEWS.items():
        rows(spark, lake, table).createOrReplaceTempView(view)
    return list(VIEWS)
