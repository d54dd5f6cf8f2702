"""Options of `aioqless worker`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from aioqless.worker.subscriptions import ORDERS


def parse_size(text: str) -> int:
    """Return the number of bytes of `512M`, `2G` or a plain number."""
    if not (match := re.fullmatch(r"([1-9]\d*)([KMG]?)", text)):
        raise typer.BadParameter(f"{text!r} must be a number of bytes, or of them with K, M or G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


Modules = Annotated[list[str], typer.Argument(help="Modules with handlers, such as app.jobs.")]
Queue = Annotated[
    list[str] | None,
    typer.Option(
        "-q",
        "--queue",
        help="A queue to serve: mail, reports=4 (at most 4 at once), urgent,5 (weight), "
        "'mail-*'; repeatable.",
    ),
]
Concurrency = Annotated[
    int, typer.Option("-c", "--concurrency", help="Maximum number of jobs at once.")
]
Order = Annotated[str, typer.Option(help=f"Which queue is polled first: {', '.join(ORDERS)}.")]
Poll = Annotated[float, typer.Option(help="Seconds between polls of empty queues.")]
Reconnect = Annotated[
    float, typer.Option(help="Seconds before Redis is tried again; the delay grows.")
]
ReconnectMax = Annotated[float, typer.Option(help="Maximum of that delay, in seconds.")]
Grace = Annotated[float, typer.Option(help="Graceful-shutdown timeout, in seconds.")]
StuckAfter = Annotated[
    float, typer.Option(help="Seconds of a blocked event loop until locks are not renewed.")
]
Threads = Annotated[int, typer.Option(help="Maximum number of plain functions at once.")]
Processes = Annotated[
    int,
    typer.Option(
        help="Maximum number of handlers with executor='process' at once; "
        "default: the number of processors."
    ),
]
MaxJobsPerProcess = Annotated[
    int | None, typer.Option(help="Jobs until such a process is replaced; default: never.")
]
KillAfter = Annotated[
    float, typer.Option(help="Seconds until a process that doesn't end is killed.")
]
Scheduler = Annotated[
    bool,
    typer.Option(
        "--scheduler/--no-scheduler", help="Declare recurring jobs and run cron schedules."
    ),
]
AllowEviction = Annotated[
    bool,
    typer.Option("--allow-eviction", help="Use a Redis that may evict jobs when it is full."),
]
Burst = Annotated[
    bool, typer.Option("--burst", help="Stop when nothing is ready and nothing runs.")
]
MaxJobs = Annotated[
    int | None,
    typer.Option(help="Stop after this many jobs; with -w, a new process takes over."),
]
MaxMemory = Annotated[
    int | None,
    typer.Option(parser=parse_size, help="Stop above this memory, e.g. 512M; with -w likewise."),
]
Workers = Annotated[
    int | None,
    typer.Option("-w", "--workers", min=1, help="Number of worker processes, plus a supervisor."),
]
Reload = Annotated[
    bool, typer.Option("--reload", help="Restart when source files change (development).")
]
Sandbox = Annotated[Path | None, typer.Option(help="Run in a new directory below this one.")]
Health = Annotated[
    str | None, typer.Option(help="PORT or HOST:PORT to answer GET /live and /ready at.")
]
Name = Annotated[str | None, typer.Option(help="The worker's name; default: host-pid-nonce.")]
ProcessNumber = Annotated[int | None, typer.Option(hidden=True)]
StatusFd = Annotated[int | None, typer.Option(hidden=True)]
Paused = Annotated[bool, typer.Option("--paused", hidden=True)]
