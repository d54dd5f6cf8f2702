"""`load("queues")`, "workers", "failures", "stats" and "recurring": each read by one task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aioqless.client import Client
from aioqless.contrib.lake.source.async_bridge import iterate
from aioqless.contrib.lake.source.options import Options
from aioqless.store import Keys
from aioqless.store.call import read_text

OPTIONS = ("days",)
PAGE = 500
TIME = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("element", pa.string()))
WHOLES = pa.list_(pa.field("element", pa.int64()))
DURATIONS = pa.struct(
    {
        "count": pa.int64(),
        "mean": pa.float64(),
        "std": pa.float64(),
        "variance": pa.float64(),
        "histogram": WHOLES,
    }
)
COUNTS = ("waiting", "running", "stalled", "scheduled", "depends", "recurring")

Row: TypeAlias = dict[str, Any]

SCHEMAS = {
    "queues": pa.schema(
        {"name": pa.string(), **dict.fromkeys(COUNTS, pa.int64()), "paused": pa.bool_()}
    ),
    "workers": pa.schema(
        {"name": pa.string(), "seen": TIME, "jobs": pa.int64(), "stalled": pa.int64()}
    ),
    "failures": pa.schema({"group": pa.string(), "jobs": pa.int64(), "latest": pa.string()}),
    "stats": pa.schema(
        {
            "queue": pa.string(),
            "day": pa.date32(),
            "failed": pa.int64(),
            "failures": pa.int64(),
            "retries": pa.int64(),
            "lost_locks": pa.int64(),
            "explicit_retries": pa.int64(),
            "wait": DURATIONS,
            "run": DURATIONS,
        }
    ),
    "recurring": pa.schema(
        {
            "jid": pa.string(),
            "klass": pa.string(),
            "queue": pa.string(),
            "data": pa.string(),
            "priority": pa.float64(),
            "tags": TEXTS,
            "retries": pa.int64(),
            "interval": pa.float64(),
            "cron": pa.string(),
            "timezone": pa.string(),
            "count": pa.int64(),
            "next": TIME,
            "backlog": pa.int64(),
            "coalesce": pa.bool_(),
            "paused": pa.bool_(),
            "declared": TIME,
        }
    ),
}


async def queues(client: Client) -> AsyncIterator[Row]:
    """Yield a row for each known queue."""
    offset = 0
    while page := await client.queues(offset=offset, count=PAGE):
        for counts in page:
            yield msgspec.structs.asdict(counts)
        offset += len(page)


async def workers(client: Client) -> AsyncIterator[Row]:
    """Yield a row for each known worker."""
    keys, execute_many = (
        Keys(client.internals.store.namespace),
        client.internals.store.connection.execute_many,
    )
    now = await client.internals.store.now()
    flat = await client.internals.store.connection.execute(
        "ZRANGE", keys("workers"), 0, -1, "WITHSCORES"
    )
    for start in range(0, len(flat), 2 * PAGE):
        names, seen = flat[start : start + 2 * PAGE : 2], flat[start + 1 : start + 2 * PAGE : 2]
        counts = await execute_many(
            [
                ("ZCOUNT", keys("worker_jobs", name), *bounds)
                for name in names
                for bounds in ((f"({now!r}", "+inf"), ("-inf", now))
            ]
        )
        for name, when, jobs, stalled in zip(names, seen, counts[::2], counts[1::2], strict=True):
            yield {
                "name": read_text(name),
                "seen": _micros(float(when)),
                "jobs": jobs,
                "stalled": stalled,
            }


async def failures(client: Client) -> AsyncIterator[Row]:
    """Yield a row for each group of failed jobs."""
    keys, execute_many = (
        Keys(client.internals.store.namespace),
        client.internals.store.connection.execute_many,
    )
    groups = sorted(await client.internals.store.connection.execute("SMEMBERS", keys("failures")))
    for start in range(0, len(groups), PAGE):
        names = groups[start : start + PAGE]
        answers = await execute_many(
            [
                (command, keys("group", name), *arguments)
                for name in names
                for command, arguments in (("LLEN", ()), ("LINDEX", (0,)))
            ]
        )
        for name, jobs, latest in zip(names, answers[::2], answers[1::2], strict=True):
            if jobs:
                yield {"group": read_text(name), "jobs": jobs, "latest": read_text(latest)}


async def stats(client: Client, days: int) -> AsyncIterator[Row]:
    """Yield a row for each queue and each of the last days that has statistics."""
    today = datetime.fromtimestamp(await client.internals.store.now(), UTC).date()
    async for queue in queues(client):
        for back in range(days):
            day = today - timedelta(days=back)
            stats = await client.queue(queue["name"]).stats(_midnight(day))
            counts = (
                stats.wait.count,
                stats.run.count,
                stats.failures,
                stats.retries,
                stats.failed,
            )
            if any(counts):
                yield {"queue": queue["name"], "day": day, **msgspec.to_builtins(stats)}


async def recurring(client: Client) -> AsyncIterator[Row]:
    """Yield a row for each recurring job."""
    async for job in client.recurring.all():
        row = {
            name: getattr(job, name)
            for name in SCHEMAS["recurring"].names
            if name not in ("next", "paused", "declared", "data")
        }
        times = {
            name: None if (seconds := getattr(job, name)) is None else _micros(seconds)
            for name in ("next", "declared")
        }
        yield {**row, **times, "paused": bool(job.paused), "data": job.raw_data}


_READS: Final[dict[str, Callable[[Client, int], AsyncIterator[Row]]]] = {
    "queues": lambda client, _: queues(client),
    "workers": lambda client, _: workers(client),
    "failures": lambda client, _: failures(client),
    "stats": stats,
    "recurring": lambda client, _: recurring(client),
}


class SummaryReader(DataSourceReader):
    """Reader of one of these tables."""

    def __init__(self, table: str, options: Options, schema: pa.Schema) -> None:
        self._table = table
        self._settings = options.client_settings()
        self._schema = schema
        self._days = options.whole("days", 7) or 0

    def partitions(self) -> list[InputPartition]:
        """Return one partition."""
        return [InputPartition(0)]

    def read(
        self,
        partition: InputPartition,  # noqa: ARG002 (pyspark's signature)
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""
        read = _READS[self._table]
        rows = list(iterate(self._settings, lambda client: read(client, self._days)))
        if rows:
            yield pa.RecordBatch.from_pylist(
                [{name: row.get(name) for name in self._schema.names} for row in rows],
                schema=self._schema,
            )


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
