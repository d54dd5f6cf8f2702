"""Metrics for Prometheus. Needs `aioqless[prometheus]`.

A worker that loads this module exports the runs that it counts to prometheus_client's registry, and
reads the numbers of jobs and the lags of all queues every 15 seconds. `aioqless worker --metrics
PORT` loads it and serves the metrics, with `-w` those of all processes; an application with an
endpoint of its own only loads it.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from aioqless import Client, Inject
from aioqless.cli.status_reporter import NUMBER_VARIABLE
from aioqless.contrib.telemetry.metrics_server import (
    FOLDER,
    QueueCollector,
    SharedReading,
    identity_of,
)
from aioqless.contrib.telemetry.queue_readings import (
    BULK_SIZES,
    DURATIONS,
    INTERVAL,
    OTHERS,
    LatestReading,
    reading_queues,
)
from aioqless.errors import require_extra
from aioqless.handlers import lifespan
from aioqless.validation import to_text
from aioqless.worker import EndedRun, RunCounts

with require_extra("prometheus"):
    from prometheus_client import REGISTRY, Counter, Histogram, values

_folder = Path(os.environ[FOLDER]) if FOLDER in os.environ else None
# Not for processes that this one starts: they have files of their own.
_number = os.environ.pop(NUMBER_VARIABLE, None)
if _folder and _number:
    _identity = identity_of(int(_number))
    for _left in _folder.glob(f"gauge_live*_{_identity}.db"):  # by the former process
        _left.unlink()
    # There is no other way to name the files otherwise than by pid.
    values.ValueClass = values.MultiProcessValue(lambda: _identity)  # type: ignore[no-untyped-call]  # prometheus_client types its other parts only

ended = Counter("aioqless_runs", "Runs by outcome", ("queue", "klass", "outcome"))
seconds = Histogram(
    "aioqless_run_seconds", "How long runs took", ("queue", "klass"), buckets=DURATIONS
)
waited = Histogram(
    "aioqless_wait_seconds",
    "For how long jobs could have been running before a worker popped them",
    ("queue", "klass"),
    buckets=DURATIONS,
)

bulk_jobs = Histogram(
    "aioqless_bulk_jobs",
    "How many jobs bulk handlers were called with",
    ("queue", "klass"),
    buckets=BULK_SIZES,
)


latest = SharedReading(_folder) if _folder else LatestReading()
queues = QueueCollector(latest.find)
REGISTRY.register(queues)


@lifespan
async def runs(counts: RunCounts = Inject) -> AsyncIterator[None]:
    """Export the runs that the worker counts."""
    counts.exporters.append(export)
    yield
    counts.exporters.remove(export)


def export(run: EndedRun) -> None:
    """Add a run to the metrics."""
    # labels that aren't UTF-8 would fail all scrapes
    labels = to_text(run.queue or OTHERS), to_text(run.klass or OTHERS)
    ended.labels(*labels, run.outcome).inc()
    seconds.labels(*labels).observe(run.seconds)
    if run.waited is not None:
        waited.labels(*labels).observe(run.waited)
    if run.bulk:
        bulk_jobs.labels(*labels).observe(run.bulk)


@lifespan
async def metrics(client: Client = Inject) -> AsyncIterator[None]:
    """Read the queues while the worker runs; of processes with one endpoint, only one does."""
    async with reading_queues(client, latest.save, _is_due):
        yield


def _is_due() -> bool:
    reading = latest.find()
    return reading is None or time.time() - reading.read_at > INTERVAL - 1
