"""Runs a worker, or a supervisor of several worker processes: worker."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, cast

import typer

from aioqless import log
from aioqless.cli.app import app
from aioqless.cli.descriptors import check_descriptor_limit
from aioqless.cli.extensions import load_supervisor
from aioqless.cli.options import LogJson, LogLevel, Namespace, Url
from aioqless.cli.worker_process import WorkerProcess
from aioqless.errors import AioqlessError
from aioqless.handlers import Handlers
from aioqless.worker import (
    ExecutorLimits,
    ReconnectDelays,
    RecycleLimits,
    Settings,
    Subscription,
)
from aioqless.worker.subscriptions import ORDERS, Order

Queues = Annotated[
    list[str] | None,
    typer.Option(
        "-q",
        "--queue",
        help="A queue to serve: mail, reports=4 (at most 4 at once), urgent,5 (weight), "
        "'mail-*'; repeatable.",
    ),
]


def parse_size(text: str) -> int:
    """Return the number of bytes of `512M`, `2G` or a plain number."""
    if not (match := re.fullmatch(r"([1-9]\d*)([KMG]?)", text)):
        raise typer.BadParameter(f"{text!r} must be a number of bytes, or of them with K, M or G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


@app.command()
def worker(
    jobs: Annotated[list[str], typer.Argument(help="Modules with handlers, such as app.jobs.")],
    queue: Queues = None,
    concurrency: Annotated[
        int, typer.Option("-c", "--concurrency", help="Maximum number of jobs at once.")
    ] = Settings.concurrency,
    order: Annotated[
        str, typer.Option(help=f"Which queue is polled first: {', '.join(ORDERS)}.")
    ] = Settings.order,
    poll: Annotated[
        float, typer.Option(help="Seconds between polls of empty queues.")
    ] = Settings.poll,
    reconnect: Annotated[
        float, typer.Option(help="Seconds before Redis is tried again; the delay grows.")
    ] = ReconnectDelays.first,
    reconnect_max: Annotated[
        float, typer.Option(help="Maximum of that delay, in seconds.")
    ] = ReconnectDelays.longest,
    grace: Annotated[
        float, typer.Option(help="Graceful-shutdown timeout, in seconds.")
    ] = Settings.grace,
    stuck_after: Annotated[
        float, typer.Option(help="Seconds of a blocked event loop until locks are not renewed.")
    ] = Settings.stuck_after,
    threads: Annotated[
        int, typer.Option(help="Maximum number of plain functions at once.")
    ] = ExecutorLimits.threads,
    processes: Annotated[
        int,
        typer.Option(
            help="Maximum number of handlers with executor='process' at once; "
            "default: the number of processors."
        ),
    ] = ExecutorLimits.processes,
    max_jobs_per_process: Annotated[
        int | None, typer.Option(help="Jobs until such a process is replaced; default: never.")
    ] = None,
    kill_after: Annotated[
        float, typer.Option(help="Seconds until a process that doesn't end is killed.")
    ] = ExecutorLimits.kill_after,
    scheduler: Annotated[
        bool,
        typer.Option(
            "--scheduler/--no-scheduler", help="Declare recurring jobs and run cron schedules."
        ),
    ] = Settings.scheduler,
    allow_eviction: Annotated[
        bool,
        typer.Option("--allow-eviction", help="Use a Redis that may evict jobs when it is full."),
    ] = False,
    burst: Annotated[
        bool, typer.Option("--burst", help="Stop when nothing is ready and nothing runs.")
    ] = False,
    max_jobs: Annotated[
        int | None,
        typer.Option(help="Stop after this many jobs; with -w, a new process takes over."),
    ] = None,
    max_memory: Annotated[
        int | None,
        typer.Option(
            parser=parse_size, help="Stop above this memory, e.g. 512M; with -w likewise."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "-w", "--workers", min=1, help="Number of worker processes, plus a supervisor."
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart when source files change (development).")
    ] = False,
    sandbox: Annotated[
        Path | None, typer.Option(help="Run in a new directory below this one.")
    ] = None,
    health: Annotated[
        str | None, typer.Option(help="PORT or HOST:PORT to answer GET /live and /ready at.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The worker's name; default: host-pid-nonce.")
    ] = None,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    process_number: Annotated[int | None, typer.Option(hidden=True)] = None,
    status_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    paused: Annotated[bool, typer.Option("--paused", hidden=True)] = False,
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
        check_descriptor_limit(workers or 1)
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
    options = ["--process-number", str(number), "--status-fd", str(status_fd)]
    if paused:
        options.append("--paused")
    return [
        sys.executable,
        *sys.orig_argv[1:after_worker],
        *options,
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
