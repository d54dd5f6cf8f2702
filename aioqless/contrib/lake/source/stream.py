"""`readStream.format("aioqless").load("events")`: the archive's stream as Spark reads it."""

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

from aioqless.contrib.lake.source.async_bridge import drawn, runner
from aioqless.contrib.lake.source.event_columns import batch_of
from aioqless.contrib.lake.source.events import EventLog, Offset, Stretch
from aioqless.contrib.lake.source.options import Options, Where

OPTIONS = ("maxEntries", "entriesPerTask", "trim", "reader", "failOnLoss")
Answer = TypeVar("Answer")


class EventStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Owns, on the driver, a connection that lasts as long as the query."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._where = options.where()
        self._schema = schema
        self._most = options.whole("maxEntries", 100_000) or 0
        self._per_task = options.whole("entriesPerTask", 25_000) or 0
        self._fail_on_loss = options.truth("failOnLoss")
        self._reader = options.text("reader") if options.truth("trim") else None
        if options.truth("trim") and not self._reader:
            raise ValueError(
                "trim needs reader, a name for this query's checkpoint: two that trim one stream would each miss a part of it"
            )
        self._target: Offset | None = None
        self._line: _Line | None = None

    def initialOffset(self) -> dict[str, Any]:
        return Offset().told()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ask(_state)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        assert most is not None or isinstance(limit, ReadAllAvailable), limit
        before = Offset.of(start)
        after = self._ask(lambda archive: archive.latest(before, most, self._target))
        if self._fail_on_loss and after.lost > before.lost:
            raise ValueError(
                f"{after.lost - before.lost} events behind {before.sid} were cut before they were read, and failOnLoss says to stop then"
            )
        return after.told()

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._ask(_state).told()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        upto = Offset.of(end)
        before = Offset.of(start)
        after = Offset(before.sid, before.n + upto.lost - before.lost, upto.lost)
        if after.place >= upto.place:
            return []
        if 0 <= upto.n - after.n <= self._per_task:
            bounds = [upto]
        else:
            bounds = self._ask(lambda archive: archive.walked(after, upto, self._per_task))
        begins = [after, *bounds[:-1]]
        return [
            InputPartition(Stretch(self._where, *pair, self._fail_on_loss))
            for pair in zip(begins, bounds, strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        stretch: Stretch = partition.value
        for n, entries in drawn(self._where, lambda client: EventLog(client).read(stretch)):
            yield batch_of(n, entries, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        if reader := self._reader:
            self._ask(lambda archive: archive.trim(Offset.of(end), reader))

    def stop(self) -> None:
        line, self._line = self._line, None
        if line:
            line.close()

    def _ask(self, act: Callable[[EventLog], Awaitable[Answer]]) -> Answer:
        if self._line is None:
            self._line = _Line(self._where)
        return self._line.ask(act)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_line": None}


class _Line:
    """A connected client, asked from code without a loop."""

    def __init__(self, where: Where) -> None:
        self._runner = runner()
        self._client = where.client()
        self._runner.run(self._client.__aenter__())

    def ask(self, act: Callable[[EventLog], Awaitable[Answer]]) -> Answer:
        async def asked() -> Answer:
            return await act(EventLog(self._client))

        return self._runner.run(asked())

    def close(self) -> None:
        self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()


async def _state(archive: EventLog) -> Offset:
    return (await archive.state()).last
