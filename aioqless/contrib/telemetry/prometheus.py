"""Metrics for Prometheus. Needs `aioqless[prometheus]`.

A worker that is given this module counts its runs in prometheus_client's registry, and reads the
depths and lags of all queues every 15 seconds. With AIOQLESS_METRICS_PORT it serves them too; an
application that has an endpoint of its own needs only that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from redis import exceptions

from aioqless import Client, Inject, Job, middleware, on_finish, resource
from aioqless.errors import require_extra
from aioqless.handlers import ENDS, Call
from aioqless.redis.connection import UNAVAILABLE
from aioqless.waiting import cancel_and_wait

with require_extra("prometheus"):
    from prometheus_client import Counter, Gauge, Histogram, start_http_server

EVERY = 15.0  # seconds between two looks at the queues
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
failed = Gauge(
    "aioqless_failed_jobs", "Jobs that failed and wait for somebody, by group", ("group",)
)


class Metrics:
    """The depths of the queues are being read, and perhaps served."""


@middleware
async def timed(job: Job[Any], call: Call) -> Any:
    """Count what runs, and for how long."""
    started = time.perf_counter()
    now = running.labels(job.queue, job.klass)
    now.inc()
    try:
        return await call()
    finally:
        now.dec()
        seconds.labels(job.queue, job.klass).observe(time.perf_counter() - started)


@on_finish(*ENDS)
def count(job: Job[Any], end: str, **fields: Any) -> None:
    """Count how runs ended."""
    ended.labels(job.queue, job.klass, end.removeprefix("job.")).inc()


@resource
async def metrics(client: Client = Inject) -> AsyncIterator[Metrics]:
    reading = asyncio.create_task(_read_always(client), name="aioqless metrics")
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


async def _read_always(client: Client) -> None:
    while True:
        with contextlib.suppress(
            *UNAVAILABLE, exceptions.NoPermissionError
        ):  # the worker tells of the outage; the gauges keep what they were
            await read(client)
        await asyncio.sleep(EVERY)


async def read(client: Client) -> None:
    """Set the gauges of queues and failure groups to what Redis has now."""
    queues = await client.queues()
    lags = await client.store.lag(queues=[counts["name"] for counts in queues]) if queues else []
    depth.clear()
    lag.clear()
    failed.clear()
    for counts, waited in zip(queues, lags, strict=True):
        for state in STATES:
            depth.labels(counts["name"], state).set(counts[state])
        lag.labels(counts["name"]).set(waited)
    for group, jobs in (await client.jobs.failed()).items():
        failed.labels(group).set(jobs)
