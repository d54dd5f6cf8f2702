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
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from aioqless.contrib.lake.source import jobs, write
from aioqless.contrib.lake.source.event_columns import SCHEMA as EVENTS
from aioqless.contrib.lake.source.job_columns import SCHEMA as JOBS
from aioqless.contrib.lake.source.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_VERSION = tuple(int(part) for part in spark_version.split(".")[:2])
_to_arrow: Callable[[StructType], pa.Schema] = (  # times are in UTC, as older ones always have them
    partial(to_arrow_schema, timezone="UTC") if _SPARK_VERSION >= (4, 2) else to_arrow_schema
)
TABLES = {"jobs": JOBS, "events": EVENTS}


class AioqlessSource(DataSource):
    """The format `aioqless` of a session in which it is registered."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "aioqless"

    def schema(self) -> StructType:
        """Return the columns of the table that is loaded."""
        return from_arrow_schema(TABLES[self._table()], prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`."""
        if self._table() == "events":
            raise ValueError(
                "events are read as a stream: use spark.readStream, which ends with "
                "trigger(availableNow=True)"
            )
        options = Options(self.options, jobs.OPTIONS)
        return jobs.JobReader(options, select_columns(schema, JOBS))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of `spark.readStream`."""
        table = self._table()
        if table != "events":
            raise ValueError(f"{table} can't be read as a stream, only events can: use spark.read")
        _require_spark(4, 2, "reading the archive as a stream")
        from aioqless.contrib.lake.source import stream

        options = Options(self.options, stream.OPTIONS)
        return stream.EventStream(options, select_columns(schema, EVENTS))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of `DataFrame.write`."""
        if overwrite:
            raise ValueError("existing jobs can't be overwritten: write with mode('append')")
        return write.JobWriter(Options(self.options, write.OPTIONS), _to_arrow(schema))

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 (pyspark's signature)
    ) -> DataSourceStreamWriter:
        """Return the writer of `DataFrame.writeStream`."""
        _require_spark(4, 1, "writing a stream of jobs")
        from aioqless.contrib.lake.source.stream_write import JobStreamWriter

        return JobStreamWriter(Options(self.options, write.OPTIONS), _to_arrow(schema))

    def _table(self) -> str:
        table = str(self.options.get("path") or "")
        if table not in TABLES:
            raise ValueError(f"there is no table {table!r} here: load one of {', '.join(TABLES)}")
        return table


def register(spark: SparkSession) -> None:
    """Let a session use the format `aioqless`: reads in any thread, writes in the calling one.

    A write finds formats in the session that is active in its thread.
    """
    spark.dataSource.register(AioqlessSource)
    spark.createDataFrame([], "nothing int")  # which makes it the active session of the thread


def _require_spark(major: int, minor: int, what: str) -> None:
    """Refuse what the data sources of an older Spark can't do."""
    if (major, minor) > _SPARK_VERSION:
        raise ValueError(
            f"{what} needs Spark {major}.{minor} or later, and this is {spark_version}"
        )


def select_columns(schema: StructType, known: pa.Schema) -> pa.Schema:
    """Return the columns that a schema asks for.

    Raises:
        ValueError: A column is unknown, or has another type than in `known`.
    """
    selected = _to_arrow(schema)
    for field in selected:
        if field.name not in known.names:
            raise ValueError(
                f"there is no column {field.name!r} here; there are {', '.join(known.names)}"
            )
        if field.type != known.field(field.name).type:
            raise ValueError(
                f"the column {field.name!r} is {known.field(field.name).type}, not {field.type}"
            )
    return selected
