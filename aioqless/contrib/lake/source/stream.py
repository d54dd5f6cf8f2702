"""`readStream.format("aioqless").load("events")`: the archive as a stream of Spark's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from aioqless.contrib.lake.source.async_bridge import iterate, new_runner
from aioqless.contrib.lake.source.event_columns import batch_of
from aioqless.contrib.lake.source.events import EventLog, Offset, StreamRange
from aioqless.contrib.lake.source.options import ClientSettings, Options

OPTIONS = ("maxEntries", "entriesPerTask", "trim", "reader", "failOnLoss")
Answer = TypeVar("Answer")


class EventStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of the stream, with a connection on the driver that lasts as long as the query."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._settings = options.client_settings()
        self._schema = schema
        self._most = options.whole("maxEntries", 100_000) or 0
        self._per_task = options.whole("entriesPerTask", 25_000) or 0
        self._fail_on_loss = options.truth("failOnLoss")
        self._reader = options.text("reader") if options.truth("trim") else None
        if options.truth("trim") and not self._reader:
            raise ValueError(
                "trim needs the option reader, a name for this query's checkpoint: two queries "
                "that trim one stream would each miss a part of it"
            )
        self._target: Offset | None = None
        self._connection: _Connection | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of the stream."""
        return Offset().to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the maximum size of a batch."""
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the last entry to read, so that a query with this trigger ends."""
        self._target = self._ask(_find_last)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        assert most is not None or isinstance(limit, ReadAllAvailable), limit
        before = Offset.from_dict(start)
        after = self._ask(lambda events: events.find_end(before, most, self._target))
        if self._fail_on_loss and after.lost > before.lost:
            raise ValueError(
                f"{after.lost - before.lost} events after {before.id} were cut before they were "
                "read, and failOnLoss is true"
            )
        return after.to_dict()

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return the stream's last entry, for the query's progress."""
        return self._ask(_find_last).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Divide a batch into the ranges of tasks."""
        until = Offset.from_dict(end)
        before = Offset.from_dict(start)
        after = Offset(before.id, before.ordinal + until.lost - before.lost, until.lost)
        if after.id_parts >= until.id_parts:
            return []
        if 0 <= until.ordinal - after.ordinal <= self._per_task:
            bounds = [until]
        else:
            bounds = self._ask(lambda events: events.divide(after, until, self._per_task))
        begins = [after, *bounds[:-1]]
        return [
            InputPartition(StreamRange(self._settings, *pair, self._fail_on_loss))
            for pair in zip(begins, bounds, strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range."""
        part: StreamRange = partition.value
        pages = iterate(self._settings, lambda client: EventLog(client).read(part))
        for ordinal, entries in pages:
            yield batch_of(ordinal, entries, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Delete what the query has processed, with the option trim."""
        if reader := self._reader:
            self._ask(lambda events: events.trim(Offset.from_dict(end), reader))

    def stop(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _ask(self, act: Callable[[EventLog], Awaitable[Answer]]) -> Answer:
        if self._connection is None:
            self._connection = _Connection(self._settings)
        return self._connection.ask(act)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}


class _Connection:
    """A connected client, called from synchronous code."""

    def __init__(self, settings: ClientSettings) -> None:
        self._runner = new_runner()
        self._client = settings.client()
        self._runner.run(self._client.__aenter__())

    def ask(self, act: Callable[[EventLog], Awaitable[Answer]]) -> Answer:
        async def call() -> Answer:
            return await act(EventLog(self._client))

        return self._runner.run(call())

    def close(self) -> None:
        self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()


async def _find_last(events: EventLog) -> Offset:
    return (await events.state()).last
