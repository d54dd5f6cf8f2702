"""Files of rows, to be put as jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS = ("csv", "json", "parquet")
NUMBERS = {"priority": "double", "delay": "double", "retries": "long"}
LISTS = ("tags", "depends")


def rows_of(
    spark: SparkSession, path: str, *, kind: str | None = None, schema: str | None = None
) -> DataFrame:
    """The rows of a file or folder. `kind` is what it is, by default what its name ends in;
    `schema` are columns as of SQL.

    What CSV holds are texts, but for the columns priority, delay and retries, which are numbers,
    and tags and depends, which are lists separated by commas: nothing is guessed, so 007 stays 007.
    JSON is one object a line. Raises AioqlessError for another kind."""
    found = kind or path.rstrip("/").removesuffix(".gz").rpartition(".")[2].lower()
    found = {"jsonl": "json", "ndjson": "json"}.get(found, found)
    if found not in KINDS:
        raise AioqlessError(
            f"{path}: what kind of file it is can't be told from its name: say one of {', '.join(KINDS)} by --format"
        )
    reader = spark.read.schema(schema) if schema else spark.read
    if found == "parquet":
        return reader.parquet(path)
    if found == "json":
        return reader.option("mode", "FAILFAST").json(path)
    rows = (
        reader.option("header", True).option("mode", "FAILFAST").option("multiLine", True).csv(path)
    )
    for name, number in NUMBERS.items():
        if name in rows.columns:
            rows = rows.withColumn(name, rows[name].cast(number))
    for name in LISTS:
        if name in rows.columns:
            rows = rows.selectExpr(
                *(
                    f"`{each}`" if each != name else f"split(`{name}`, ' *, *') as `{name}`"
                    for each in rows.columns
                )
            )
    return rows
