"""Files of rows that are put as jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("csv", "json", "parquet")
_ALIASES = {"jsonl": "json", "ndjson": "json"}
# Columns of CSV that are no strings.
_NUMBERS = {"priority": "double", "delay": "double", "retries": "long"}
_LISTS = ("tags", "depends")


def read_rows(
    spark: SparkSession, path: str, *, kind: str | None = None, schema: str | None = None
) -> DataFrame:
    """Return the rows of a file or folder.

    Args:
        spark: The session.
        path: The file or folder.
        kind: csv, json or parquet; by default the ending of the name.
        schema: The columns as SQL. Without it, all columns of CSV are strings, but for numbers and
            lists that a job has.

    Raises:
        AioqlessError: The format is unknown.
    """
    ending = kind or path.rstrip("/").removesuffix(".gz").rpartition(".")[2].lower()
    form = _ALIASES.get(ending, ending)
    if form not in FORMATS:
        raise AioqlessError(
            f"the name {path} doesn't say its format: give one of {', '.join(FORMATS)} by --format"
        )
    reader = spark.read.schema(schema) if schema else spark.read
    if form == "parquet":
        return reader.parquet(path)
    reader = reader.option("mode", "FAILFAST")
    if form == "json":
        return reader.json(path)
    return _convert(reader.option("header", True).option("multiLine", True).csv(path))


def _convert(rows: DataFrame) -> DataFrame:
    """Return rows of CSV with the numbers and lists of jobs as such."""
    from pyspark.sql.functions import split

    for name, number in _NUMBERS.items():
        if name in rows.columns:
            rows = rows.withColumn(name, rows[name].cast(number))
    for name in _LISTS:
        if name in rows.columns:
            rows = rows.withColumn(name, split(name, " *, *"))
    return rows
