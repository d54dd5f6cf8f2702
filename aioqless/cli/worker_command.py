"""Runs `aioqless worker`: a worker, or a supervisor of several worker processes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

from aioqless.cli.extension_loader import load_supervisor
from aioqless.cli.open_file_limit import check_open_file_limit
from aioqless.cli.worker_options import WorkerOptions, parse_options
from aioqless.cli.worker_process import WorkerProcess
from aioqless.errors import AioqlessError
from aioqless.handlers import Handlers
from aioqless.runtime import log
from aioqless.worker import (
    ExecutorLimits,
    ReconnectDelays,
    RecycleLimits,
    Settings,
    Subscription,
)
from aioqless.worker.subscriptions import Order


def run_worker(arguments: Sequence[str]) -> int:
    """Run what the words behind `aioqless worker` ask for; return the exit code.

    Raises:
        AioqlessError, ValueError: an option or a module is refused; the message says why.
    """
    options = parse_options(arguments)
    log.write_to(level=options.log_level, as_json=options.log_json, process=options.process_number)
    settings = _read_settings(options)
    if options.process_number is None and (options.workers or options.reload):
        processes = options.workers or 1
        check_open_file_limit(processes)
        return load_supervisor()(
            _process_command,
            processes=processes,
            grace=options.grace + options.kill_after,
            burst=options.burst,
            reload=options.reload,
            health=options.health,
            sandbox=options.sandbox,
        )
    sys.path.insert(0, str(Path.cwd()))
    process = WorkerProcess(
        settings=settings,
        name=options.name,
        url=options.url,
        namespace=options.namespace,
        health=options.health,
        sandbox=options.sandbox,
        number=options.process_number,
        status_fd=options.status_fd,
        paused=options.paused,
    )
    return process.run(_import_modules(options.modules))


def _read_settings(options: WorkerOptions) -> Settings:
    return Settings(
        queues=tuple(Subscription.read(text) for text in options.queue or ("default",)),
        order=cast(Order, options.order),  # Settings checks it
        concurrency=options.concurrency,
        poll=options.poll,
        grace=options.grace,
        stuck_after=options.stuck_after,
        burst=options.burst,
        scheduler=options.scheduler,
        allow_eviction=options.allow_eviction,
        executors=ExecutorLimits(
            threads=options.threads,
            processes=options.processes,
            max_jobs_per_process=options.max_jobs_per_process,
            kill_after=options.kill_after,
        ),
        recycle=RecycleLimits(max_jobs=options.max_jobs, max_memory=options.max_memory),
        reconnect=ReconnectDelays(first=options.reconnect, longest=options.reconnect_max),
    )


def _process_command(number: int, status_fd: int, paused: bool) -> list[str]:
    """Return the command line of a process: the supervisor's own, and what only that knows."""
    after_worker = len(sys.orig_argv) - len(sys.argv) + 2  # argv is [program, "worker", ...]
    hidden = ["--process-number", str(number), "--status-fd", str(status_fd)]
    if paused:
        hidden.append("--paused")
    return [
        sys.executable,
        *sys.orig_argv[1:after_worker],
        *hidden,
        *sys.orig_argv[after_worker:],
    ]


def _import_modules(names: list[str]) -> list[ModuleType]:
    """Import modules before Redis is connected.

    Raises:
        ValueError: if none has a handler.
    """
    modules = [_import_module(name) for name in names]
    Handlers.collect(*modules)
    return modules


def _import_module(name: str) -> ModuleType:
    """Import a module with handlers.

    Raises:
        AioqlessError: if it doesn't exist; other errors within it pass with their traceback.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if not f"{name}.".startswith(f"{missing.name}."):
            raise
        hint = ""
        if name.endswith(".py"):
            hint = f"; is it {'.'.join(Path(name).with_suffix('').parts)!r}?"
        raise AioqlessError(
            f"there is no module {name!r} in {Path.cwd()} nor among those installed{hint}"
        ) from None
