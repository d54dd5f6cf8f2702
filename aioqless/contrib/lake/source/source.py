"""The data source: which reader or writer a load or save gets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from aioqless.contrib.lake.source import jobs, write
from aioqless.contrib.lake.source.job_columns import SCHEMA as JOBS
from aioqless.contrib.lake.source.options import LoadOptions, SaveOptions, parse_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_VERSION = tuple(int(part) for part in spark_version.split(".")[:2])
_to_arrow: Callable[[StructType], pa.Schema] = (  # times are in UTC, as older ones always have them
    partial(to_arrow_schema, timezone="UTC") if _SPARK_VERSION >= (4, 2) else to_arrow_schema
)


class AioqlessSource(DataSource):
    """The format `aioqless` of a session in which it is registered."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "aioqless"

    def schema(self) -> StructType:
        """Return the columns of the table that is loaded."""
        self._check_table()
        return from_arrow_schema(JOBS, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`."""
        self._check_table()
        options = parse_options(LoadOptions, self.options)
        return jobs.JobReader(options, select_columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of `DataFrame.write`."""
        if overwrite:
            raise ValueError("existing jobs can't be overwritten: write with mode('append')")
        return write.JobWriter(parse_options(SaveOptions, self.options), _to_arrow(schema))

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 (pyspark's signature)
    ) -> DataSourceStreamWriter:
        """Return the writer of `DataFrame.writeStream`."""
        if _SPARK_VERSION < (4, 1):
            raise ValueError(
                f"writing a stream of jobs needs Spark 4.1 or later, and this is {spark_version}"
            )
        from aioqless.contrib.lake.source.stream_write import JobStreamWriter

        return JobStreamWriter(parse_options(SaveOptions, self.options), _to_arrow(schema))

    def _check_table(self) -> None:
        if (table := str(self.options.get("path") or "")) != "jobs":
            raise ValueError(f"there is no table {table!r} here: load('jobs')")


def register(spark: SparkSession) -> None:
    """Let a session use the format `aioqless`: reads in any thread, writes in the calling one.

    A write finds formats in the session that is active in its thread.
    """
    spark.dataSource.register(AioqlessSource)
    spark.createDataFrame([], "nothing int")  # which makes it the active session of the thread


def select_columns(schema: StructType) -> pa.Schema:
    """Return the columns that a schema asks for.

    Raises:
        ValueError: A column is unknown, or has another type than here.
    """
    selected = _to_arrow(schema)
    for field in selected:
        if field.name not in JOBS.names:
            raise ValueError(
                f"there is no column {field.name!r} here; there are {', '.join(JOBS.names)}"
            )
        if field.type != JOBS.field(field.name).type:
            raise ValueError(
                f"the column {field.name!r} is {JOBS.field(field.name).type}, not {field.type}"
            )
    return selected
