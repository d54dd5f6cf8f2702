"""`aioqless worker`: what it can be told, and whether this is a process of it or the one that looks
after several."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from aioqless import log
from aioqless.cli.app import LogJson, LogLevel, Namespace, Url, app
from aioqless.cli.descriptors import check_descriptor_limit
from aioqless.cli.worker_process import Process
from aioqless.contrib.commands.supervisor import command, supervise
from aioqless.contrib.supervisor import Plan
from aioqless.errors import AioqlessError
from aioqless.handlers import Handlers
from aioqless.worker import (
    ExecutorLimits,
    ReconnectDelays,
    RecycleLimits,
    Settings,
    Subscription,
)
from aioqless.worker.subscriptions import ORDERS

QUEUE = "A queue to serve: mail, reports=4 (at most 4 at once), urgent,5 (weight), 'mail-*'; repeatable."
Queues = Annotated[list[str] | None, typer.Option("-q", "--queue", help=QUEUE)]
StuckAfter = Annotated[
    float, typer.Option(help="Seconds of a blocked loop, after which locks are kept no more.")
]


def bytes_of(size: str) -> int:
    """The bytes of `512M`, `2G` or a plain number."""
    if not (found := re.fullmatch(r"([1-9]\d*)([KMG]?)", size)):
        raise typer.BadParameter(f"{size!r} must be a number of bytes, or of them with K, M or G")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


@app.command()
def worker(
    jobs: Annotated[list[str], typer.Argument(help="Modules with handlers, such as app.jobs.")],
    queue: Queues = None,
    concurrency: Annotated[
        int, typer.Option("-c", "--concurrency", help="Jobs at once.")
    ] = Settings.concurrency,
    order: Annotated[
        str, typer.Option(help=f"Which queue is asked first: {', '.join(ORDERS)}.")
    ] = Settings.order,
    poll: Annotated[
        float, typer.Option(help="Seconds between looks at empty queues.")
    ] = Settings.poll,
    reconnect: Annotated[
        float, typer.Option(help="Seconds before Redis is tried again; growing.")
    ] = ReconnectDelays.first,
    reconnect_max: Annotated[
        float, typer.Option(help="The longest such pause.")
    ] = ReconnectDelays.longest,
    grace: Annotated[
        float, typer.Option(help="Seconds to finish in when told to stop.")
    ] = Settings.grace,
    stuck_after: StuckAfter = Settings.stuck_after,
    threads: Annotated[int, typer.Option(help="Plain functions at once.")] = ExecutorLimits.threads,
    processes: Annotated[
        int, typer.Option(help="Handlers with executor='process' at once; default: the processors.")
    ] = ExecutorLimits.processes,
    max_jobs_per_process: Annotated[
        int | None, typer.Option(help="Then another process takes its place; default: never.")
    ] = None,
    kill_after: Annotated[
        float, typer.Option(help="Seconds until a process that was told to stop is killed.")
    ] = ExecutorLimits.kill_after,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Declare recurring jobs, tick cron.")
    ] = Settings.scheduler,
    allow_eviction: Annotated[
        bool, typer.Option("--allow-eviction", help="Work on a Redis that may delete jobs.")
    ] = False,
    burst: Annotated[
        bool, typer.Option("--burst", help="Stop when nothing is ready and nothing runs.")
    ] = False,
    max_jobs: Annotated[
        int | None, typer.Option(help="Stop after so many jobs; with -w, a fresh process goes on.")
    ] = None,
    max_memory: Annotated[
        int | None,
        typer.Option(parser=bytes_of, help="Stop when it takes more, such as 512M; likewise."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "-w", "--workers", min=1, help="So many of these, and one to look after them."
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Begin anew when source files change: for development.")
    ] = False,
    sandbox: Annotated[
        Path | None, typer.Option(help="Work in a directory of its own below this one.")
    ] = None,
    health: Annotated[
        str | None, typer.Option(help="PORT or HOST:PORT to answer GET /live and /ready at.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The worker's name; default: host-pid-nonce.")
    ] = None,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    number: Annotated[int | None, typer.Option(hidden=True)] = None,
    line: Annotated[int | None, typer.Option(hidden=True)] = None,
    paused: Annotated[bool, typer.Option("--paused", hidden=True)] = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Perform jobs. SIGTERM or SIGINT: finish what runs, hand back the rest; a second one: end at
    once."""
    given = locals()
    log.write_to(level=log_level, as_json=log_json, process=number)
    settings = Settings(
        queues=tuple(Subscription.read(text) for text in queue or ("default",)),
        executors=ExecutorLimits(**_named(ExecutorLimits, given)),
        recycle=RecycleLimits(**_named(RecycleLimits, given)),
        reconnect=ReconnectDelays(first=reconnect, longest=reconnect_max),
        **_named(Settings, {name: given[name] for name in given if name != "reconnect"}),
    )
    if number is None and (workers or reload):
        raise typer.Exit(_supervise(given))
    sys.path.insert(0, str(Path.cwd()))
    Process(settings=settings, **_named(Process, given)).work(_modules(jobs))


def _supervise(given: dict[str, Any]) -> int:
    """Look after several; returns the exit code."""
    check_descriptor_limit(given["workers"] or 1)
    plan = Plan(
        command=command,
        processes=given["workers"] or 1,
        grace=given["grace"] + given["kill_after"],
        burst=given["burst"],
        forgiving=given["reload"],
    )
    return supervise(plan, health=given["health"], but=given["sandbox"])


def _named(kind: type[object], given: dict[str, Any]) -> dict[str, Any]:
    """Those that were given under the name of one of its fields."""
    return {name: given[name] for name in kind.__annotations__ if name in given}


def _modules(names: list[str]) -> list[ModuleType]:
    """Import modules. Raises ValueError if there is no handler in any, before Redis is asked for
    anything."""
    modules = [_imported(name) for name in names]
    Handlers.collect(*modules)
    return modules


def _imported(module: str) -> ModuleType:
    """A module with handlers. One that isn't there is refused; what breaks within one is told with
    its traceback."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if not f"{module}.".startswith(f"{missing.name}."):
            raise
        meant = (
            f"; is it {'.'.join(Path(module).with_suffix('').parts)!r}?"
            if module.endswith(".py")
            else ""
        )
        raise AioqlessError(
            f"there is no module {module!r} in {Path.cwd()} nor among those installed{meant}"
        ) from None
