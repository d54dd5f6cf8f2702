"""`load("jobs")`: the jobs that are in Redis, read by many tasks in parallel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aioqless.client import Client
from aioqless.contrib.lake.source.async_bridge import call, iterate
from aioqless.contrib.lake.source.job_columns import batch_of, fields_of
from aioqless.contrib.lake.source.job_scan import JobScanner, KeyspacePart
from aioqless.contrib.lake.source.options import ClientSettings, Options

OPTIONS = ("partitions",)


@dataclass(frozen=True)
class Jobs:
    """Reads jobs part by part, without Spark."""

    settings: ClientSettings
    schema: pa.Schema

    def parts(self, most: int | None = None) -> list[KeyspacePart]:
        """Divide the keyspace; see `JobScanner.divide`."""
        return call(self.settings, lambda client: JobScanner(client).divide(most))

    def read(self, part: KeyspacePart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        return iterate(self.settings, lambda client: self._batches(client, part))

    async def _batches(self, client: Client, part: KeyspacePart) -> AsyncIterator[pa.RecordBatch]:
        scanner, fields = JobScanner(client), fields_of(self.schema)
        execute_many, prefix = (
            client.internals.store.connection.execute_many,
            scanner.keys("job", b""),
        )
        async for jids in scanner.jids(part):
            stored = await execute_many(
                [("HMGET", prefix + jid, *fields) for jid in jids], raise_errors=False
            )
            # Another type of key than a hash gives an error, and is no job.
            if rows := [each for each in stored if isinstance(each, list)]:
                yield batch_of(rows, self.schema)


class JobReader(DataSourceReader):
    """Reader of Spark's."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._jobs = Jobs(options.client_settings(), schema)
        self._most = options.whole("partitions", None)

    def partitions(self) -> list[InputPartition]:
        """Return the parts of the keyspace."""
        return [InputPartition(part) for part in self._jobs.parts(self._most)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        return self._jobs.read(partition.value)
