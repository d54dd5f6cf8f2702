"""`load("jobs")`: what Redis keeps of each job, read by many tasks at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aioqless.client import Client
from aioqless.contrib.lake.source.async_bridge import asked, drawn
from aioqless.contrib.lake.source.job_columns import batch_of, fields_of
from aioqless.contrib.lake.source.job_scan import Finder, Piece, Wanted
from aioqless.contrib.lake.source.options import Options, Where

OPTIONS = ("partitions", "tag")
# seconds by which a stored time may differ from its score: of what is read too much, Spark takes
# its share
CLOCKS = 0.001


@dataclass(frozen=True)
class Jobs:
    """Reads jobs in pieces; knows nothing of Spark."""

    where: Where
    schema: pa.Schema

    def pieces(self, wanted: Wanted, most: int | None = None) -> list[Piece]:
        return asked(self.where, lambda client: Finder(client).pieces(wanted, most))

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        return drawn(self.where, lambda client: self._batches(client, piece))

    async def _batches(self, client: Client, piece: Piece) -> AsyncIterator[pa.RecordBatch]:
        finder, fields = Finder(client), fields_of(self.schema)
        execute_many, prefix = client.keyspace.execute_many, finder.keys("job", b"")
        async for jids in finder.jids(piece):
            stored = await execute_many(
                [("HMGET", prefix + jid, *fields) for jid in jids], raise_errors=False
            )
            if rows := [
                each for each in stored if isinstance(each, list)
            ]:  # what isn't a hash is no job
                yield batch_of(rows, self.schema)


class JobReader(DataSourceReader):
    """Tells Spark what the pieces are. Filters choose an index; Spark applies them nevertheless, so
    an index may hold too much."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._jobs = Jobs(options.where(), schema)
        self._most = options.whole("partitions", None)
        self._wanted = Wanted(tag=options.text("tag"))

    def pushFilters(self, filters: list[datasource.Filter]) -> Iterable[datasource.Filter]:
        for each in filters:
            self._wanted = narrowed(self._wanted, each)
            yield each

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(piece) for piece in self._jobs.pieces(self._wanted, self._most)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._jobs.read(partition.value)


def narrowed(wanted: Wanted, by: datasource.Filter) -> Wanted:
    """What is wanted, where a filter says more of it."""
    match by:
        case datasource.EqualTo((name,), value) | datasource.EqualNullSafe((name,), value) if (
            isinstance(value, str)
        ):
            return _among(wanted, name, frozenset({value}))
        case datasource.In((name,), values) if all(isinstance(value, str) for value in values):
            return _among(wanted, name, frozenset(values))
        case datasource.GreaterThanOrEqual(("time",), datetime() as when) | datasource.GreaterThan(
            ("time",), datetime() as when
        ):
            return replace(wanted, since=max(wanted.since or 0, when.timestamp() - CLOCKS))
    return wanted


def _among(wanted: Wanted, column: str, values: frozenset[str]) -> Wanted:
    if column not in (places := {"jid": "jids", "queue": "queues", "state": "states"}):
        return wanted
    before: frozenset[str] | None = getattr(wanted, places[column])
    change: dict[str, Any] = {places[column]: values if before is None else before & values}
    return replace(wanted, **change)
