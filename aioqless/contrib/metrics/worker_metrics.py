"""WorkerMetrics: counts the runs of a worker, and reports them every 10 seconds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count

import msgspec
from redis import exceptions

import aioqless
from aioqless import validation
from aioqless.client import Client
from aioqless.contrib.metrics.generated_commands import MetricsCommands, MetricsReportRow
from aioqless.contrib.metrics.reader import RUN_BUCKETS, UNITS, WAIT_BUCKETS, WAITS, bucket_of
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.worker.context import memory_in_use
from aioqless.worker.running_jobs import RunningJobs

INTERVAL = 10.0  # seconds between two reports
LAST_TIMEOUT = 0.5  # seconds for the last report
MOST_SERIES = 1000  # as in run_metrics.lua
ROWS_PER_CALL = 10  # keeps Redis busy for about a millisecond
OTHERS = ("", "")  # queue and klass of runs that are not counted by their own
# Which version of the application runs, where a platform or a build says so.
VERSION_VARIABLES = (
    *("GIT_SHA", "GIT_COMMIT", "SENTRY_RELEASE", "HEROKU_BUILD_COMMIT", "HEROKU_SLUG_COMMIT"),
    *("RENDER_GIT_COMMIT", "RAILWAY_GIT_COMMIT_SHA", "KOYEB_GIT_SHA", "FLY_IMAGE_REF"),
    *("K_REVISION", "SOURCE_VERSION"),
)


class Series(msgspec.Struct):
    """The runs of one klass in one queue since the last report."""

    failures: int = 0
    retries: int = 0
    run_seconds: float = 0.0
    wait_seconds: float = 0.0
    buckets: dict[int, int] = {}

    def encode(self) -> bytes:
        """Return the counts as run_metrics.lua adds them."""
        units = [round(seconds * UNITS) for seconds in (self.run_seconds, self.wait_seconds)]
        pairs = [number for pair in self.buckets.items() for number in pair]
        return msgspec.json.encode([self.failures, self.retries, *units, *pairs])


class WorkerMetrics:
    """Counts what a worker runs, and reports it with what the worker is.

    A job costs no command. What was counted since the last report is lost with a killed process.

    Owns the counts, and those reports that Redis has not answered: they are sent again under the
    same id.

    Args:
        worker: Name of the worker.
        running: Its running jobs.
        version: Version of the application; default: what the environment says.

    Attributes:
        version: Version of the application, if it is known.
    """

    def __init__(self, worker: str, running: RunningJobs, version: str | None = None) -> None:
        self._worker = worker
        self._running = running
        self.version = validation.fit_name(version or find_version()) or None
        self._started = time.time()
        self._process = secrets.token_hex(8)
        self._numbers = count()
        self._series: dict[tuple[str, str], Series] = {}
        self._unanswered: list[tuple[str, list[MetricsReportRow]]] = []

    def count(
        self, series: tuple[str, str], end: str, seconds: float, waited: float | None
    ) -> None:
        """Count a run of a series: queue and klass."""
        counts = self._series.get(series)
        if counts is None:
            if len(self._series) >= MOST_SERIES:
                series = OTHERS
            counts = self._series.setdefault(series, Series())
        if end == "job.failed":
            counts.failures += 1
        elif end == "job.retried":
            counts.retries += 1
        buckets = counts.buckets
        bucket = bucket_of(seconds, RUN_BUCKETS)
        buckets[bucket] = buckets.get(bucket, 0) + 1
        counts.run_seconds += seconds
        if waited is not None:
            bucket = WAITS + bucket_of(waited, WAIT_BUCKETS)
            buckets[bucket] = buckets.get(bucket, 0) + 1
            counts.wait_seconds += waited

    @asynccontextmanager
    async def reporting(self, client: Client) -> AsyncIterator[None]:
        """Report while in the block, and at its end."""
        commands = MetricsCommands(client.internals.store)
        task = asyncio.create_task(self._run(commands), name=f"aioqless metrics {self._worker}")
        try:
            yield
        finally:
            await cancel_and_wait(task)
            with contextlib.suppress(AioqlessError, exceptions.RedisError, OSError):
                async with asyncio.timeout(LAST_TIMEOUT):
                    await self._report(commands, ended=True)

    async def _run(self, commands: MetricsCommands) -> None:
        while True:
            try:
                await self._report(commands)
            except Exception as error:  # it is only a service to the operator
                log.debug("metrics.delayed", error=str(error))
            await asyncio.sleep(INTERVAL)

    async def _report(self, commands: MetricsCommands, *, ended: bool = False) -> None:
        """Send what Redis has not answered yet, then what was counted since."""
        await self._send(commands, self._unanswered, ended=False)
        series, self._series = self._series, {}
        rows: list[MetricsReportRow] = [
            {"queue": queue, "klass": klass, "values": counts.encode()}
            for (queue, klass), counts in series.items()
        ]
        self._unanswered += [
            (f"{self._process}:{next(self._numbers)}", rows[first : first + ROWS_PER_CALL])
            for first in range(0, len(rows) or 1, ROWS_PER_CALL)
        ]
        await self._send(commands, self._unanswered, ended=ended)

    async def _send(
        self,
        commands: MetricsCommands,
        reports: list[tuple[str, list[MetricsReportRow]]],
        *,
        ended: bool,
    ) -> None:
        """Send reports until one gets no answer; remove those that got one."""
        memory, busy = memory_in_use(), len(self._running.slots)
        facts = msgspec.json.encode(self._facts(memory, busy))
        while reports:
            report, rows = reports[0]
            await commands.metrics_report(
                worker=self._worker,
                report=report,
                facts=facts,
                memory=memory,
                busy=busy,
                version=self.version,
                ended="ended" if ended and len(reports) == 1 else None,
                batch=rows,
            )
            del reports[0]

    def _facts(self, memory: int, busy: int) -> dict[str, object]:
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "aioqless": aioqless.__version__,
            "version": self.version,
            "started": self._started,
            "memory": memory,
            "busy": busy,
            "slots": self._running.concurrency,
        }


def find_version(environ: Mapping[str, str] = os.environ) -> str:
    """Return the version of the application as the environment says; empty if it doesn't."""
    return next(filter(None, map(environ.get, VERSION_VARIABLES)), "")
