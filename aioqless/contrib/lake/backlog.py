"""Snapshots of the queues and of the workers: what waits for how long, and who is there to work."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from aioqless.client import Client
from aioqless.client.coverage import matches
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import SNAPSHOTS, TABLES, WORKER_SNAPSHOTS

INTERVAL: Final = 60.0  # seconds between two snapshots
_COUNTS: Final = ("waiting", "running", "stalled", "scheduled", "depends", "paused")
_FACTS: Final = ("host", "pid", "aioqless", "version", "slots", "busy", "memory")
_QUEUES: Final = 10_000  # at most


async def read_backlog(client: Client) -> dict[str, pa.RecordBatch]:
    """Return the queues and the workers of a namespace as they are now, by table.

    Facts of a worker are null if it doesn't report them, as workers of other qless clients.
    """
    now = time.time()
    queues = await client.queues(count=_QUEUES)
    lags = await client.lags(*(each.name for each in queues))
    workers = [
        each
        for each in await client.workers.counts()
        if each.alive or (each.alive is None and now - each.seen <= INTERVAL)
    ]
    facts = await client.metrics.workers(*(each.name for each in workers))
    at = datetime.fromtimestamp(now, UTC)
    of_queues = [
        {name: getattr(queue, name) for name in _COUNTS}
        | {"queue": queue.name, "lag": lag}
        | {"workers": sum(_serves(each.queues, queue.name) for each in workers)}
        for queue, lag in zip(queues, lags, strict=True)
    ]
    of_workers: list[dict[str, Any]] = []
    for each in workers:
        row: dict[str, Any] = {"worker": each.name, "jobs": each.jobs, "stalled": each.stalled}
        if fact := facts.get(each.name):
            row |= {name: getattr(fact, name) for name in _FACTS}
            row["started"] = datetime.fromtimestamp(fact.started, UTC)
        of_workers.append(row | {"queues": each.queues})
    moment = {"taken": at, "namespace": client.namespace, "date": at.date()}
    return {
        name: pa.RecordBatch.from_pylist([row | moment for row in rows], TABLES[name].schema)
        for name, rows in ((SNAPSHOTS, of_queues), (WORKER_SNAPSHOTS, of_workers))
    }


def store_backlog(lake: Lake, snapshots: dict[str, pa.RecordBatch]) -> None:
    """Add a snapshot to the lake."""
    for name, rows in snapshots.items():
        if rows.num_rows:
            lake.table(name).append([rows])


def _serves(patterns: list[str] | None, queue: str) -> bool:
    return any(matches(queue, each.partition("=")[0]) for each in patterns or ())
