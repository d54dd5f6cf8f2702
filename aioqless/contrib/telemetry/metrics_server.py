"""Serves metrics for Prometheus: those of this process, or of all below a supervisor.

Worker processes below a supervisor write their metrics to files of one folder, as
prometheus_client's multiprocess mode does, and the supervisor adds them up. A process that replaces
another one has its number and continues with its files, so that no counter ever goes backwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import msgspec

from aioqless.cli.http_server import Response, serve_http
from aioqless.contrib.telemetry.queue_readings import QueueReading
from aioqless.errors import require_extra
from aioqless.runtime.log import log
from aioqless.validation import describe

with require_extra("prometheus"):
    from prometheus_client import REGISTRY, CollectorRegistry, disable_created_metrics
    from prometheus_client.core import GaugeMetricFamily, Metric
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.multiprocess import MultiProcessCollector
    from prometheus_client.registry import Collector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's name
QUEUES = "queues.json"
GAUGES = {  # by name: the description, and the labels
    "queue_jobs": ("Jobs of a queue by state", "queue", "state"),
    "queue_lag_seconds": ("For how long the next job of a queue has been waiting", "queue"),
    "queue_delay_seconds": (
        "For how long the next job of a delayed queue has been waiting, by what keeps it",
        *("queue", "reason"),
    ),
    "failed_jobs": ("Failed jobs by group", "group"),
    "archive_entries": ("Entries of the archive that are in Redis",),
    "archive_lag_seconds": ("For how long the oldest entry of the archive has been unread",),
    "worker_slots": ("Jobs that a worker can run at once", "worker"),
    "worker_busy_slots": ("Slots that run jobs", "worker"),
    "worker_memory_bytes": ("Memory of a worker's process", "worker"),
    "mark_timestamp_seconds": ("When a version was deployed, or another mark was made", "text"),
}


class QueueCollector(Collector):
    """Yields gauges of all queues, as the latest reading has them."""

    def __init__(self, find_latest: Callable[[], QueueReading | None]) -> None:
        self._find_latest = find_latest

    def describe(self) -> list[GaugeMetricFamily]:
        """Return the metrics without values."""
        return [
            GaugeMetricFamily(f"aioqless_{name}", text, labels=labels)
            for name, (text, *labels) in GAUGES.items()
        ]

    def collect(self) -> list[GaugeMetricFamily]:
        """Return the metrics."""
        reading = self._find_latest()
        if reading is None:
            return []
        jobs, lags, delays, failed, entries, archive_lag, *of_workers, marks = metrics = (
            self.describe()
        )
        for queue, counts in reading.jobs.items():
            for state, count in counts.items():
                jobs.add_metric((queue, state), count)
        for queue, seconds in reading.lags.items():
            lags.add_metric((queue,), seconds)
        for queue, (reason, seconds) in reading.delays.items():
            delays.add_metric((queue, reason), seconds)
        for group, count in reading.failed.items():
            failed.add_metric((group,), count)
        entries.add_metric((), reading.archive_entries)
        archive_lag.add_metric((), reading.archive_lag)
        for worker, values in reading.workers.items():
            for metric, value in zip(of_workers, values, strict=True):
                metric.add_metric((worker,), value)
        for text, at in reading.marks.items():
            marks.add_metric((text,), at)
        return metrics


class SharedReading:
    """The latest reading of all processes that share a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / QUEUES

    def save(self, reading: QueueReading) -> None:
        """Replace the latest reading."""
        with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
            file.write(msgspec.json.encode(reading))
        Path(file.name).replace(self._path)

    def find(self) -> QueueReading | None:
        """Return the latest reading, unless there is none or it is too old to be reported."""
        try:
            reading = msgspec.json.decode(self._path.read_bytes(), type=QueueReading)
        except FileNotFoundError:
            return None
        return reading if reading.is_current else None


class SharedMetrics(Collector):
    """Yields the metrics of the worker processes of a supervisor."""

    def __init__(self, folder: Path, find_numbers: Callable[[], Collection[int]]) -> None:
        self._folder = folder
        self._find_numbers = find_numbers
        self._queues = QueueCollector(SharedReading(folder).find)

    def collect(self) -> Iterator[Metric]:
        """Return the metrics, without gauges of processes that have ended."""
        alive = {identity_of(number) for number in self._find_numbers()}
        for path in self._folder.glob("gauge_live*.db"):
            owner = path.stem.rpartition("_")[2]
            if owner not in alive and not (owner.isdigit() and _is_alive(int(owner))):
                path.unlink(missing_ok=True)
        files = [str(path) for path in self._folder.glob("*.db") if _has_content(path)]
        yield from MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]  # prometheus_client types its other parts only
        yield from self._queues.collect()


def identity_of(number: int) -> str:
    """Return how the files of a worker process are named."""
    return f"worker-{number}"


def _has_content(path: Path) -> bool:
    """Return whether a file can be read: a process that creates one sets its size afterwards."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:  # of a process that has ended, and removed by another request
        return False


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


@asynccontextmanager
async def serve_metrics(
    address: str, registry: CollectorRegistry = REGISTRY
) -> AsyncIterator[None]:
    """Answer `GET /metrics` at PORT or HOST:PORT while in the block; without a host, at loopback.

    Raises:
        ValueError: The address is malformed.
        AioqlessError: The port is taken.
    """

    async def respond(accept: str) -> Response:
        encode, content_type = choose_encoder(accept)
        try:
            # in a thread: thousands of series take a while
            body = await asyncio.to_thread(encode, registry)
        except Exception as error:  # of a collector, which may be the application's
            log.error("metrics.failed", error=describe(error), exc_info=True)
            return Response(HTTPStatus.INTERNAL_SERVER_ERROR, b"")
        return Response(HTTPStatus.OK, body, content_type)

    # one series less of each counter and histogram
    disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client types its other parts only
    async with serve_http("metrics", "metrics", address, {"/metrics": respond}) as port:
        log.info("metrics.listening", port=port)
        yield


@asynccontextmanager
async def serve_shared_metrics(
    address: str, find_numbers: Callable[[], Collection[int]]
) -> AsyncIterator[None]:
    """Serve the metrics of all processes that are started while in the block.

    `find_numbers` returns the numbers of the running processes.
    """
    with tempfile.TemporaryDirectory(prefix="aioqless-metrics-") as folder:
        registry = CollectorRegistry()
        registry.register(SharedMetrics(Path(folder), find_numbers))
        former = os.environ.get(FOLDER)
        os.environ[FOLDER] = folder
        try:
            async with serve_metrics(address, registry):
                yield
        finally:
            if former is None:
                del os.environ[FOLDER]
            else:
                os.environ[FOLDER] = former
