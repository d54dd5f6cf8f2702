"""load("archive"): the entries of the archive's stream as a table, a range of ids for each task.

A row is an event, or a rejected entry with its `problem`. A task that finds fewer entries than were
planned returns those: the driver notices by the number of rows. `readStream` reads what arrives.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from aioqless.client import Client
from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake.batch import Range, plan_ranges
from aioqless.contrib.lake.event_columns import batch_of
from aioqless.contrib.lake.event_log import EventLog
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.contrib.lake.source.async_bridge import call, iterate
from aioqless.contrib.lake.source.options import ClientOptions, ClientSettings
from aioqless.errors import AioqlessError

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


class ArchiveStreamReader(DataSourceStreamReader):
    """Reads what arrives in the stream; an offset is the id and the number of an entry."""

    def __init__(self, options: ArchiveOptions, columns: Sequence[str]) -> None:
        self._settings: ClientSettings = options.client_settings()
        self._reader = ArchiveReader(options, columns)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (pyspark's name)
        """Return the offset before the first entry."""
        return {"id": "0-0", "ordinal": _deleted(call(self._settings, _state))}

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 (of any Spark)
        """Return the offset of the last entry."""
        state = call(self._settings, _state)
        return {"id": state.last or "0-0", "ordinal": state.added}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a partition for each range between two offsets.

        Raises:
            AioqlessError: Some of their entries were deleted, or the archive was.
        """
        if start["ordinal"] == end["ordinal"]:
            return []
        if start["ordinal"] > end["ordinal"]:
            raise AioqlessError(
                f"the archive was deleted and created again since entry {start['id']}: use a new "
                "checkpoint to read it from its start"
            )

        async def plan(client: Client) -> list[Range]:
            log = EventLog(client)
            return await plan_ranges(log, start["id"], end["id"], start["ordinal"])

        ranges = call(self._settings, plan)
        if missing := end["ordinal"] - start["ordinal"] - sum(each.count for each in ranges):
            raise AioqlessError(
                f"{missing:,} entries of the archive after {start['id']} were deleted before this "
                "stream read them; a lake deletes what it has archived. Use a new checkpoint to "
                "read the entries that are left"
            )
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range."""
        return self._reader.read(partition)


async def _state(client: Client) -> ArchiveState:
    return await client.archive.state()


def _deleted(state: ArchiveState) -> int:
    """Return how many entries precede the first one that the stream has."""
    return state.added - state.length


async def _plan(client: Client) -> list[Range]:
    """Return the ranges of all entries that the stream has now."""
    state = await client.archive.state()
    if not state.length or state.last is None:
        return []
    return await plan_ranges(EventLog(client), "0-0", state.last, _deleted(state))
