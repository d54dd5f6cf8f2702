"""`load("jobs")`: the jobs that are in Redis, listed by the driver and read by tasks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aioqless.client import Client
from aioqless.contrib.lake.source.async_bridge import call, iterate
from aioqless.contrib.lake.source.job_columns import batch_of, fields_of
from aioqless.contrib.lake.source.options import LoadOptions
from aioqless.store import Keys

PAGE = 2_000
_JOBS_PER_TASK = 25_000


async def list_jids(client: Client) -> list[bytes]:
    """Return the jids of a client's namespace, each once.

    A job that exists during the whole scan is found, wherever it moves.
    """
    store = client.internals.store
    prefix = Keys(store.namespace)("job", b"")
    pattern = re.sub(rb"([*?\[\]\\^])", rb"\\\1", prefix) + b"*"
    cursor, found = 0, set[bytes]()
    while True:
        reply = await store.connection.execute(
            "SCAN", cursor, "MATCH", pattern, "COUNT", PAGE, "TYPE", "hash"
        )
        cursor = int(reply[0])
        found.update(key[len(prefix) :] for key in reply[1])
        if not cursor:
            return list(found)


async def read_jobs(
    client: Client, jids: Sequence[bytes], schema: pa.Schema
) -> AsyncIterator[pa.RecordBatch]:
    """Yield the rows of jobs that still exist."""
    store, fields = client.internals.store, fields_of(schema)
    prefix = Keys(store.namespace)("job", b"")
    for at in range(0, len(jids), PAGE):
        stored = await store.connection.execute_many(
            [("HMGET", prefix + jid, *fields) for jid in jids[at : at + PAGE]], raise_errors=False
        )
        # Another type of key than a hash gives an error, and is no job.
        yield batch_of([each for each in stored if isinstance(each, list)], schema)


class JobReader(DataSourceReader):
    """Reader of Spark's."""

    def __init__(self, options: LoadOptions, schema: pa.Schema) -> None:
        self._settings = options.client_settings()
        self._schema = schema
        self._most = options.partitions

    def partitions(self) -> list[InputPartition]:
        """Divide the jobs among tasks."""
        jids = call(self._settings, list_jids)
        size = -(-len(jids) // self._most) if self._most else _JOBS_PER_TASK
        ranges = range(0, len(jids), size or 1)
        return [InputPartition(jids[at : at + size]) for at in ranges] or [InputPartition([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task's jobs."""
        return iterate(
            self._settings, lambda client: read_jobs(client, partition.value, self._schema)
        )
