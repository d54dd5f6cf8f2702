"""Runs a worker, or a supervisor of several worker processes: worker."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import typer

from aioqless.cli import worker_options as options
from aioqless.cli.app import Section, app
from aioqless.cli.extension_loader import load_supervisor
from aioqless.cli.open_file_limit import check_open_file_limit
from aioqless.cli.options import LogJson, LogLevel, Namespace, Url
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


@app.command(rich_help_panel=Section.RUN)
def worker(
    jobs: options.Modules,
    queue: options.Queue = None,
    concurrency: options.Concurrency = Settings.concurrency,
    order: options.Order = Settings.order,
    poll: options.Poll = Settings.poll,
    reconnect: options.Reconnect = ReconnectDelays.first,
    reconnect_max: options.ReconnectMax = ReconnectDelays.longest,
    grace: options.Grace = Settings.grace,
    stuck_after: options.StuckAfter = Settings.stuck_after,
    threads: options.Threads = ExecutorLimits.threads,
    processes: options.Processes = ExecutorLimits.processes,
    max_jobs_per_process: options.MaxJobsPerProcess = None,
    kill_after: options.KillAfter = ExecutorLimits.kill_after,
    scheduler: options.Scheduler = Settings.scheduler,
    allow_eviction: options.AllowEviction = False,
    burst: options.Burst = False,
    max_jobs: options.MaxJobs = None,
    max_memory: options.MaxMemory = None,
    workers: options.Workers = None,
    reload: options.Reload = False,
    sandbox: options.Sandbox = None,
    health: options.Health = None,
    name: options.Name = None,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    process_number: options.ProcessNumber = None,
    status_fd: options.StatusFd = None,
    paused: options.Paused = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Run jobs.

    SIGTERM or SIGINT: graceful shutdown: finish running jobs, release the rest. A second signal
    ends it at once.
    """
    log.write_to(level=log_level, as_json=log_json, process=process_number)
    settings = Settings(
        queues=tuple(Subscription.read(text) for text in queue or ("default",)),
        order=cast(Order, order),  # Settings checks it
        concurrency=concurrency,
        poll=poll,
        grace=grace,
        stuck_after=stuck_after,
        burst=burst,
        scheduler=scheduler,
        allow_eviction=allow_eviction,
        executors=ExecutorLimits(
            threads=threads,
            processes=processes,
            max_jobs_per_process=max_jobs_per_process,
            kill_after=kill_after,
        ),
        recycle=RecycleLimits(max_jobs=max_jobs, max_memory=max_memory),
        reconnect=ReconnectDelays(first=reconnect, longest=reconnect_max),
    )
    if process_number is None and (workers or reload):
        check_open_file_limit(workers or 1)
        exit_code = load_supervisor()(
            _process_command,
            processes=workers or 1,
            grace=grace + kill_after,
            burst=burst,
            reload=reload,
            health=health,
            sandbox=sandbox,
        )
        raise typer.Exit(exit_code)
    sys.path.insert(0, str(Path.cwd()))
    process = WorkerProcess(
        settings=settings,
        name=name,
        url=url,
        namespace=namespace,
        health=health,
        sandbox=sandbox,
        number=process_number,
        status_fd=status_fd,
        paused=paused,
    )
    process.run(_import_modules(jobs))


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
