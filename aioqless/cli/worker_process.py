"""A worker as the main program of a process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TextIO, TypeAlias

from structlog.contextvars import get_contextvars

from aioqless.cli.connect import run_with_client
from aioqless.cli.exit_codes import RECYCLED
from aioqless.cli.health_check import serve_health_checks
from aioqless.cli.open_file_limit import check_open_file_limit
from aioqless.cli.partitions import count_partitions
from aioqless.cli.shutdown_timer import ShutdownTimer
from aioqless.cli.signal_handlers import install_worker_handlers, loop_caller
from aioqless.cli.status_reporter import PAUSED, READY, STARTING, StatusReporter
from aioqless.cli.systemd import ServiceState, make_notifier
from aioqless.cli.worker_options import WorkerOptions
from aioqless.client import Client, extensions
from aioqless.handlers import Source
from aioqless.runtime.log import log
from aioqless.worker import AnyWorker, Settings, Worker
from aioqless.worker.runner import OUTCOME_TIMEOUT

# seconds beyond `shutdown_timeout` and `kill_after`, for killed processes to be reaped and for
# outcomes to be stored
SHUTDOWN_MARGIN = 2.0

MakeWorker: TypeAlias = Callable[..., AnyWorker]


@dataclass(frozen=True)
class WorkerProcess:
    """A worker process, as its command line asks for it."""

    options: WorkerOptions
    settings: Settings

    def run(self, handlers: Sequence[Source]) -> int:
        """Run jobs until the process is stopped or recycled; return the exit code."""
        check_open_file_limit(0)
        _log_unawaited()
        options = self.options
        kind: MakeWorker = Worker
        if count_partitions(options.namespace, options.partitions) is not None:
            kind = extensions.load("partitions").PartitionedWorker
        return run_with_client(
            options.url,
            options.namespace,
            lambda client: self._run(client, handlers, kind),
            options.partitions,
        )

    async def _run(self, client: Client, handlers: Sequence[Source], kind: MakeWorker) -> int:
        log.info("redis.used", **client.endpoint)
        name, number = self.options.name, self.options.process_number
        name = f"{name}-{number}" if name and number else name  # each process' locks are its own
        is_supervised = self.options.status_fd is not None
        seconds = self.settings.shutdown_timeout + self.settings.kill_after + SHUTDOWN_MARGIN
        timer = ShutdownTimer(seconds, lambda: worker.waits_for_redis, OUTCOME_TIMEOUT)
        notifier = None if is_supervised else make_notifier()

        def stopping() -> None:
            timer.start()
            if notifier:
                notifier.stopping()

        worker = kind(client, *handlers, settings=self.settings, name=name, on_stopping=stopping)
        if self.options.process_id:
            worker.identify(self.options.process_id, after=(self.options.after or "").split())
        if self.options.paused:
            worker.pause()
        install_worker_handlers(worker, timer, supervised=is_supervised)
        async with AsyncExitStack() as stack:
            await self._report(worker, timer, stack)
            if notifier:
                await stack.enter_async_context(notifier.watch(lambda: _service_state(worker)))
            await worker.compose_scripts()
            # What stays for good: a full collection that visits it would block the loop for 30 ms.
            gc.freeze()
            try:
                await worker.run()
            finally:
                timer.start()
        if worker.abandoned:
            await worker.release_abandoned()
        if not worker.dropped_outcomes:
            timer.exit_code = RECYCLED if worker.recycling and is_supervised else 0
        if worker.abandoned:
            timer.exit_now()
        return timer.exit_code

    async def _report(self, worker: AnyWorker, timer: ShutdownTimer, stack: AsyncExitStack) -> None:
        """Report the status to the supervisor, or else to health checks and scrapes of metrics."""
        options = self.options
        if options.status_fd is not None:
            reporter = StatusReporter(
                options.status_fd, lambda: _status(worker), _orphan_handler(worker, timer)
            )
            stack.callback(asyncio.create_task(reporter.run()).cancel)
            return
        if health := options.health:
            checks = serve_health_checks(health, live=lambda: True, ready=lambda: worker.ready)
            await stack.enter_async_context(checks)
        if options.metrics:
            server = extensions.load("telemetry.metrics_server")
            await stack.enter_async_context(server.serve_metrics(options.metrics))


def _log_unawaited() -> None:
    """Log each line of a handler that forgets to await a coroutine; Python only warns of it."""
    show = warnings.showwarning

    def log_or_show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if str(message).endswith("was never awaited") and "jid" in get_contextvars():
            log.warning("job.not_awaited", why=str(message), where=f"{filename}:{lineno}")
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = log_or_show


def _status(worker: AnyWorker) -> bytes:
    if worker.paused:
        return PAUSED
    return READY if worker.ready else STARTING


def _service_state(worker: AnyWorker) -> ServiceState:
    text = "taking jobs" if worker.ready else "paused" if worker.paused else "waiting for Redis"
    return ServiceState(started=worker.ready or worker.paused, healthy=True, text=text)


def _orphan_handler(worker: AnyWorker, timer: ShutdownTimer) -> Callable[[], None]:
    """Return what a thread calls when the supervisor is gone."""
    call = loop_caller()

    def stop() -> None:
        timer.start()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            call(worker.stop)
        log.warning("worker.orphaned")

    return stop
