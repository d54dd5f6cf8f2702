"""Snapshots of the queues: jobs in each state, how long the next one has waited, and workers."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

from aioqless.client import Client
from aioqless.client.coverage import matches
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import SNAPSHOTS, TABLES

INTERVAL: Final = 60.0  # seconds between two snapshots
_COUNTS: Final = ("waiting", "running", "stalled", "scheduled", "depends", "paused")
_QUEUES: Final = 10_000  # at most


async def read_backlog(client: Client) -> pa.RecordBatch:
    """Return a row for each queue of a namespace, as it is now."""
    now = time.time()
    queues = await client.queues(count=_QUEUES)
    lags = await client.lags(*(each.name for each in queues))
    workers = [each for each in await client.workers.counts() if now - each.seen <= INTERVAL]
    at = datetime.fromtimestamp(now, UTC)
    rows = [
        {name: getattr(queue, name) for name in _COUNTS}
        | {"taken": at, "queue": queue.name, "lag": lag}
        | {"workers": sum(_serves(each.queues, queue.name) for each in workers)}
        for queue, lag in zip(queues, lags, strict=True)
    ]
    partition = {"namespace": client.namespace, "date": at.date()}
    return pa.RecordBatch.from_pylist([row | partition for row in rows], TABLES[SNAPSHOTS].schema)


def store_backlog(lake: Lake, rows: pa.RecordBatch) -> None:
    """Add a snapshot to the lake."""
    if rows.num_rows:
        lake.snapshot(SNAPSHOTS).append(rows)


def _serves(patterns: list[str] | None, queue: str) -> bool:
    return any(matches(queue, each.partition("=")[0]) for each in patterns or ())
