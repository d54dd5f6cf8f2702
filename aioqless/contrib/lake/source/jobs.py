"""`load("jobs")`: the jobs that are in Redis, read by many tasks in parallel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aioqless.client import Client
from aioqless.contrib.lake.source.async_bridge import call, iterate
from aioqless.contrib.lake.source.job_columns import batch_of, fields_of
from aioqless.contrib.lake.source.job_scan import JobFilter, JobScanner, Piece
from aioqless.contrib.lake.source.options import ClientSettings, Options

OPTIONS = ("partitions", "tag")
# Seconds by which the time in a job's hash may differ from its score in the index; Spark drops the
# rows that are read too much.
TOLERANCE = 0.001


@dataclass(frozen=True)
class Jobs:
    """Reads jobs piece by piece, without Spark."""

    settings: ClientSettings
    schema: pa.Schema

    def pieces(self, wanted: JobFilter, most: int | None = None) -> list[Piece]:
        """Divide the jobs that pass a filter into pieces; see `JobScanner.divide`."""
        return call(self.settings, lambda client: JobScanner(client).divide(wanted, most))

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        return iterate(self.settings, lambda client: self._batches(client, piece))

    async def _batches(self, client: Client, piece: Piece) -> AsyncIterator[pa.RecordBatch]:
        scanner, fields = JobScanner(client), fields_of(self.schema)
        execute_many, prefix = (
            client.internals.store.connection.execute_many,
            scanner.keys("job", b""),
        )
        async for jids in scanner.jids(piece):
            stored = await execute_many(
                [("HMGET", prefix + jid, *fields) for jid in jids], raise_errors=False
            )
            # Another type of key than a hash gives an error, and is no job.
            if rows := [each for each in stored if isinstance(each, list)]:
                yield batch_of(rows, self.schema)


class JobReader(DataSourceReader):
    """Reader of Spark's. Filters choose an index; Spark applies them again to the rows."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._jobs = Jobs(options.client_settings(), schema)
        self._most = options.whole("partitions", None)
        self._wanted = JobFilter(tag=options.text("tag"))

    def pushFilters(self, filters: list[datasource.Filter]) -> Iterable[datasource.Filter]:
        """Narrow the jobs to read; return the filters, which Spark has to apply, too."""
        for each in filters:
            self._wanted = narrow(self._wanted, each)
            yield each

    def partitions(self) -> list[InputPartition]:
        """Return the pieces."""
        return [InputPartition(piece) for piece in self._jobs.pieces(self._wanted, self._most)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        return self._jobs.read(partition.value)


def narrow(wanted: JobFilter, by: datasource.Filter) -> JobFilter:
    """Return a filter that includes one of Spark's, if there is an index for it."""
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
            return replace(wanted, since=max(wanted.since or 0, when.timestamp() - TOLERANCE))
    return wanted


def _among(wanted: JobFilter, column: str, values: frozenset[str]) -> JobFilter:
    """Return a filter that also requires one of these values."""
    if column not in (names := {"jid": "jids", "queue": "queues", "state": "states"}):
        return wanted
    before: frozenset[str] | None = getattr(wanted, names[column])
    change: dict[str, Any] = {names[column]: values if before is None else before & values}
    return replace(wanted, **change)
