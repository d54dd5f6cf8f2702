"""Metrics for Prometheus. Needs `aioqless[prometheus]`.

A worker that loads this module counts its runs in prometheus_client's registry, and reads the
depths and lags of all queues every 15 seconds. With AIOQLESS_METRICS_PORT it also serves the
metrics; an application with an endpoint of its own needs no port.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from redis import exceptions

from aioqless import Client, Inject, Job, middleware, on_finish, resource
from aioqless.client import REDIS_UNAVAILABLE
from aioqless.errors import require_extra
from aioqless.handlers import ENDS, Call
from aioqless.runtime.tasks import cancel_and_wait

with require_extra("prometheus"):
    from prometheus_client import Counter, Gauge, Histogram, start_http_server

READ_INTERVAL = 15.0  # seconds
STATES = ("waiting", "running", "stalled", "scheduled", "depends", "recurring")

ended = Counter(
    "aioqless_runs", "Runs of this process by how they ended", ("queue", "klass", "end")
)
running = Gauge("aioqless_running", "Handlers that run in this process", ("queue", "klass"))
seconds = Histogram(
    "aioqless_run_seconds", "How long handlers of this process took", ("queue", "klass")
)
depth = Gauge(
    "aioqless_queue_jobs", "Jobs of a queue by state, in all processes", ("queue", "state")
)
lag = Gauge(
    "aioqless_queue_lag_seconds", "How long the next job of a queue has been waiting", ("queue",)
)
failed = Gauge("aioqless_failed_jobs", "Failed jobs by group", ("group",))
archive_entries = Gauge("aioqless_archive_entries", "Entries of the archive that are in Redis")
archive_lag = Gauge(
    "aioqless_archive_lag_seconds", "How long the oldest entry of the archive has been unread"
)


class Metrics:
    """Marks that the gauges are updated, and perhaps served."""


@middleware
async def measure(job: Job[Any], call: Call) -> Any:
    """Count running handlers, and measure their durations."""
    started = time.perf_counter()
    now = running.labels(job.queue, job.klass)
    now.inc()
    try:
        return await call()
    finally:
        now.dec()
        seconds.labels(job.queue, job.klass).observe(time.perf_counter() - started)


@on_finish(*ENDS)
def count(job: Job[Any], end: str, **_fields: Any) -> None:
    """Count runs by how they ended."""
    ended.labels(job.queue, job.klass, end.removeprefix("job.")).inc()


@resource
async def metrics(client: Client = Inject) -> AsyncIterator[Metrics]:
    """Update the gauges while the worker runs, and serve them if a port is set."""
    reading = asyncio.create_task(_update_gauges(client), name="aioqless metrics")
    port = os.environ.get("AIOQLESS_METRICS_PORT")
    server, thread = (
        start_http_server(int(port), os.environ.get("AIOQLESS_METRICS_HOST", "127.0.0.1"))
        if port
        else (None, None)
    )
    try:
        yield Metrics()
    finally:
        await cancel_and_wait(reading)
        if server and thread:
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            thread.join()


async def _update_gauges(client: Client) -> None:
    while True:
        # the worker logs the outage; the gauges keep their values
        with contextlib.suppress(*REDIS_UNAVAILABLE, exceptions.NoPermissionError):
            await read_gauges(client)
        await asyncio.sleep(READ_INTERVAL)


async def read_gauges(client: Client) -> None:
    """Update the gauges of queues, failure groups and the archive from Redis."""
    queues = await client.queues()
    lags = await client.lags(*[counts.name for counts in queues])
    depth.clear()
    lag.clear()
    failed.clear()
    for counts, waited in zip(queues, lags, strict=True):
        for state in STATES:
            depth.labels(counts.name, state).set(getattr(counts, state))
        lag.labels(counts.name).set(waited)
    for group, jobs in (await client.jobs.failed()).items():
        failed.labels(group).set(jobs)
    archive = await client.archive.state()
    archive_entries.set(archive.length)
    archive_lag.set(archive.unread_since(time.time()))
