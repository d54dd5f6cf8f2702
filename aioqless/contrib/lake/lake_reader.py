"""The lake's tables as DataFrames, and rows of gold without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.snapshot import DataFile
from aioqless.contrib.lake.table_files import read, read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS: Final = {
    name.partition("/")[2]: name for name in TABLES if not name.startswith("quarantine")
} | {"unreadable": "quarantine/events"}
_ROWS: Final = 200_000  # that are read before they are merged


def name_views(spark: SparkSession, lake: Lake) -> list[str]:
    """Make every table known to SQL by its name, such as jobs, and return the names."""
    for view, table in VIEWS.items():
        read(spark, lake.snapshot(table)).createOrReplaceTempView(view)
    return list(VIEWS)


def read_rows(
    lake: Lake,
    table: str,
    files: Sequence[DataFile],
    columns: Collection[str] | None = None,
    condition: pc.Expression | None = None,
    fold: Callable[[pa.Table], pa.Table] | None = None,
) -> pa.Table:
    """Return rows of some files of a table, without Spark.

    Args:
        lake: The lake.
        table: The name of the table.
        files: The files to read.
        columns: The columns to return, all of them unless given.
        condition: Which rows to return.
        fold: Merges rows into fewer; called whenever there are many, so that memory stays bounded.
    """
    storage, declared = lake.storage.within(table), TABLES[table]
    names = None if columns is None else list(columns)
    if fold is None:
        return read_table(storage, declared, files, names, condition)
    folded = fold(read_table(storage, declared, (), names))
    held: list[pa.Table] = []
    for file in files:
        held.append(read_table(storage, declared, [file], names, condition))
        if sum(each.num_rows for each in held) >= _ROWS or file is files[-1]:
            rows = pa.concat_tables(held)
            folded = fold(pa.concat_tables([folded, rows.select(folded.column_names)]))
            held = []
    return folded
