"""load("archive"): the entries of the archive's stream as a table, a range of ids for each task.

A row is an event, or a rejected entry with its `problem`. A task that finds fewer entries than were
planned returns those: the driver notices by the number of rows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aioqless.client import Client
from aioqless.contrib.lake.batch import Range, plan_ranges
from aioqless.contrib.lake.event_columns import batch_of
from aioqless.contrib.lake.event_log import EventLog
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.contrib.lake.source.async_bridge import call, iterate
from aioqless.contrib.lake.source.options import ClientOptions, ClientSettings

SCHEMA: Final = pa.schema(
    {each.name: each.type for name in (EVENTS, QUARANTINE) for each in TABLES[name].schema}
)


class ArchiveOptions(ClientOptions, rename="camel"):
    """Options of `load("archive")`; without ranges, all entries that the stream has."""

    ranges: str | None = None


class ArchiveReader(DataSourceReader):
    """Reads ranges of the stream, one in each task."""

    def __init__(self, options: ArchiveOptions, columns: Sequence[str]) -> None:
        self._settings: ClientSettings = options.client_settings()
        self._ranges = options.ranges
        self._columns = list(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each range."""
        if self._ranges is None:
            ranges = call(self._settings, _plan)
        else:
            ranges = [Range(*each) for each in json.loads(self._ranges)]
        return [InputPartition(each) for each in ranges] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range."""
        if (chosen := partition.value) is not None:
            for batch in iterate(self._settings, lambda client: self._read(client, chosen)):
                yield batch.select(self._columns)

    async def _read(self, client: Client, chosen: Range) -> AsyncIterator[pa.RecordBatch]:
        ordinal = chosen.ordinal
        async for page in EventLog(client).read_pages(chosen.after, chosen.last):
            yield batch_of(ordinal, page, self._settings.namespace)
            ordinal += len(page)


async def _plan(client: Client) -> list[Range]:
    """Return the ranges of all entries that the stream has now."""
    state = await client.archive.state()
    if not state.length or state.last is None:
        return []
    return await plan_ranges(EventLog(client), "0-0", state.last, state.added - state.length)
