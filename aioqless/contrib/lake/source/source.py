"""The data source: which reader or writer a load or save gets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from aioqless.contrib.lake.source import jobs, write
from aioqless.contrib.lake.source.job_columns import SCHEMA as JOBS
from aioqless.contrib.lake.source.options import LoadOptions, SaveOptions, parse_options
from aioqless.contrib.lake.spark import archive_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_VERSION = tuple(int(part) for part in spark_version.split(".")[:2])
_to_arrow: Callable[[StructType], pa.Schema] = (  # times are in UTC, as older ones always have them
    partial(to_arrow_schema, timezone="UTC") if _SPARK_VERSION >= (4, 2) else to_arrow_schema
)

_TABLES: Final = {"jobs": JOBS, "archive": archive_source.SCHEMA}


class AioqlessSource(DataSource):
    """The format `aioqless` of a session in which it is registered."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "aioqless"

    def schema(self) -> StructType:
        """Return the columns of the table that is loaded."""
        return from_arrow_schema(self._table(), prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`."""
        columns = select_columns(schema, self._table())
        if self.options.get("path") == "archive":
            options = parse_options(archive_source.ArchiveOptions, self.options)
            return archive_source.ArchiveReader(options, columns.names)
        return jobs.JobReader(parse_options(LoadOptions, self.options), columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of `spark.readStream`, of the archive only.

        Raises:
            ValueError: It is asked for another table.
        """
        if self.options.get("path") != "archive":
            raise ValueError("only the archive is a stream: readStream…load('archive')")
        options = parse_options(archive_source.ArchiveOptions, self.options)
        names = select_columns(schema, self._table()).names
        return archive_source.ArchiveStreamReader(options, names)

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

    def _table(self) -> pa.Schema:
        """Return all columns of the table that is loaded."""
        if (table := str(self.options.get("path") or "")) not in _TABLES:
            raise ValueError(f"there is no table {table!r} here: load('jobs') or load('archive')")
        return _TABLES[table]


def register(spark: SparkSession) -> None:
    """Let a session use the format `aioqless`: reads in any thread, writes in the calling one.

    A write finds formats in the session that is active in its thread.
    """
    spark.dataSource.register(AioqlessSource)
    spark.createDataFrame([], "nothing int")  # which makes it the active session of the thread


def select_columns(schema: StructType, table: pa.Schema) -> pa.Schema:
    """Return the columns of a table that a schema asks for.

    Raises:
        ValueError: A column is unknown, or has another type than here.
    """
    selected = _to_arrow(schema)
    for field in selected:
        if field.name not in table.names:
            raise ValueError(
                f"there is no column {field.name!r} here; there are {', '.join(table.names)}"
            )
        if field.type != table.field(field.name).type:
            raise ValueError(
                f"the column {field.name!r} is {table.field(field.name).type}, not {field.type}"
            )
    return selected
