"""The data source's name and doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from aioqless.contrib.lake.source.event_columns import SCHEMA as EVENTS
from aioqless.contrib.lake.source.job_columns import SCHEMA as JOBS
from aioqless.contrib.lake.source.jobs import OPTIONS as OF_JOBS
from aioqless.contrib.lake.source.jobs import JobReader
from aioqless.contrib.lake.source.options import Options
from aioqless.contrib.lake.source.stream import OPTIONS as OF_EVENTS
from aioqless.contrib.lake.source.stream import EventStream
from aioqless.contrib.lake.source.summaries import OPTIONS as OF_SUMMARIES
from aioqless.contrib.lake.source.summaries import SCHEMAS, SummaryReader
from aioqless.contrib.lake.source.write import OPTIONS as OF_WRITES
from aioqless.contrib.lake.source.write import JobWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"jobs": JOBS, **SCHEMAS, "events": EVENTS}


class AioqlessSource(DataSource):
    """`spark.read.format("aioqless")`, once it is registered."""

    @classmethod
    def name(cls) -> str:
        return "aioqless"

    def schema(self) -> StructType:
        return from_arrow_schema(TABLES[self._table()], prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        table = self._table()
        if table == "jobs":
            return JobReader(Options(self.options, OF_JOBS), chosen(schema, TABLES[table]))
        if table == "events":
            raise ValueError(
                "events are read as a stream, by spark.readStream, which with trigger(availableNow=True) ends"
            )
        return SummaryReader(
            table, Options(self.options, OF_SUMMARIES), chosen(schema, TABLES[table])
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        table = self._table()
        if table != "events":
            raise ValueError(
                f"{table} can't be read as a stream, only events can: read it with spark.read"
            )
        return EventStream(Options(self.options, OF_EVENTS), chosen(schema, EVENTS))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise ValueError("jobs are put beside those that there are: write with mode('append')")
        return self._writer(schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return self._writer(schema)

    def _writer(self, schema: StructType) -> JobWriter:
        return JobWriter(Options(self.options, OF_WRITES), to_arrow_schema(schema, timezone="UTC"))

    def _table(self) -> str:
        table = str(self.options.get("path") or "")
        if table not in TABLES:
            raise ValueError(f"there is no table {table!r} here: load one of {', '.join(TABLES)}")
        return table


def register(spark: SparkSession) -> None:
    """Let a session use the format `aioqless`."""
    spark.dataSource.register(AioqlessSource)


def chosen(schema: StructType, known: pa.Schema) -> pa.Schema:
    """The columns that a schema asks for. Raises ValueError for those that there aren't, and for
    other types than theirs."""
    asked = to_arrow_schema(schema, timezone="UTC")
    for field in asked:
        if field.name not in known.names:
            raise ValueError(
                f"there is no column {field.name!r} here; there are {', '.join(known.names)}"
            )
        if field.type != known.field(field.name).type:
            raise ValueError(
                f"the column {field.name!r} is {known.field(field.name).type}, not {field.type}"
            )
    return asked
