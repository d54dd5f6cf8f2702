"""Moves the archive's stream to the lake: lake archive, run."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.options import Namespace, Partitions, Url
from aioqless.cli.presentation.formatting import format_duration
from aioqless.runtime import standard_streams

from .options import Conf, LakePlace, Master
from .shared import LAKE, command, namespaces_of, print_progress, refresh_tables, spark_opener

if TYPE_CHECKING:
    from aioqless.client.archive import ArchiveState
    from aioqless.contrib.lake.archiver import Archived, Archiver
    from aioqless.contrib.lake.lake import Lake

_PAUSE = 5.0  # seconds

Entries = Annotated[
    int,
    typer.Option(
        help="Maximum number of entries of a batch, which is one commit.", min=1, max=10_000_000
    ),
]
Every = Annotated[
    float | None,
    typer.Option(help="Repeat at this interval, in seconds; default: once.", min=0.1),
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over", help="Archive though another lake did, or though entries are missing."
    ),
]


@command
def archive(
    url: Url = None,
    namespace: Namespace = "ql",
    lake: LakePlace = LAKE,
    every: Every = None,
    entries: Entries = 100_000,
    take_over: TakeOver = False,
    partitions: Partitions = None,
    status: Annotated[
        bool,
        typer.Option("--status", help="Show the archive's state; exit code 1 if nothing reads it."),
    ] = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Move the archive's stream to the lake: the present entries, or continuously.

    With --every, a snapshot of the queues is taken each minute.

    A second SIGTERM ends it at once.
    """
    if status:
        state = asyncio.run(_state(url, namespace, partitions))
        trouble = state.describe_problem(time.time())
        print("\n".join(filter(None, [_format_state(state, time.time()), trouble])))
        raise typer.Exit(REFUSED if trouble else 0)
    open_session = spark_opener("archive", master, conf)
    from aioqless.contrib.lake.archiver import Archiver
    from aioqless.contrib.lake.lake import Lake

    standard_streams.protect()  # how far it is, on standard error
    stop = _stop_event()
    made = open_when_reachable(lake, stop if every is not None else None)
    archivers = [
        Archiver(
            Lake(lake) if number else made,
            open_session,
            url,
            each,
            entries=entries,
            report=print_progress,
        )
        for number, each in enumerate(namespaces_of(namespace, partitions))
    ]
    work = (
        partial(Archiver.once, stop=stop, take_over=take_over)
        if every is None
        else partial(Archiver.continuously, stop=stop, every=every, take_over=take_over)
    )
    _print_done(_run_all(work, archivers, stop))


@command
def run(
    url: Url = None,
    namespace: Namespace = "ql",
    lake: LakePlace = LAKE,
    every: Every = None,
    entries: Entries = 100_000,
    take_over: TakeOver = False,
    partitions: Partitions = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Archive and compute the tables, once or continuously, in one Spark application.

    With --every, a snapshot of the queues is taken each minute.

    A second SIGTERM ends it at once.
    """
    open_session = spark_opener("run", master, conf, is_large=every is not None)
    from aioqless.contrib.lake.archiver import Archiver, repeat
    from aioqless.contrib.lake.open_table import ConcurrentCommit

    standard_streams.protect()  # how far it is, on standard error
    stop = _stop_event()
    made = open_when_reachable(lake, stop if every is not None else None)
    archivers = [
        Archiver(made, open_session, url, each, entries=entries, report=print_progress)
        for each in namespaces_of(namespace, partitions)
    ]
    if every is None:
        for each in archivers:
            each.once(stop, take_over=take_over)
        refresh_tables(made, open_session)
        _print_done([each.done for each in archivers])
        return
    for each in archivers:
        each.check(take_over)

    def step() -> None:
        for each in archivers:
            each.step(stop)
        try:
            refresh_tables(made, open_session)
        except ConcurrentCommit as error:
            print_progress(f"the tables stay as they are until the next time: {error}")

    repeat(step, stop, every, archivers[0].is_redis_away, print_progress)
    _print_done([each.done for each in archivers])


def _print_done(done: Sequence[Archived]) -> None:
    print(
        f"{sum(each.events for each in done):,} events in "
        f"{sum(each.batches for each in done):,} batches; "
        f"{sum(each.unreadable for each in done):,} in quarantine, "
        f"{sum(each.swept for each in done):,} swept, "
        f"{sum(each.lost for each in done):,} lost"
    )


def open_when_reachable(url: str, stop: threading.Event | None) -> Lake:
    """Return the lake; with a stop, wait for an object store that doesn't answer."""
    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.storage import StoreUnreachable

    while True:
        try:
            return Lake(url, create=True)
        except StoreUnreachable as error:
            if stop is None or stop.is_set():
                raise
            print_progress(f"{error}; again in {_PAUSE:g} s")
            stop.wait(_PAUSE)


def _run_all(
    run: Callable[[Archiver], Archived], archivers: Sequence[Archiver], stop: threading.Event
) -> list[Archived]:
    """Run the archivers in parallel; if one fails, the others end after their batch."""
    if len(archivers) == 1:
        return [run(archivers[0])]

    def run_one(archiver: Archiver) -> Archived:
        try:
            return run(archiver)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(len(archivers), thread_name_prefix="archiver") as threads:
        return list(threads.map(run_one, archivers))


async def _state(url: str | None, namespace: str, partitions: int | None) -> ArchiveState:
    from aioqless.cli.connect import make_client

    async with make_client(url, namespace, partitions) as client:
        return await client.archive.state()


def _format_state(state: ArchiveState, now: float) -> str:
    """Return the state of the archive in one line."""
    read = (
        f"last read {format_duration(now - state.at)} ago, by {state.reader}"
        if state.at
        else "never read"
    )
    entries = f"{state.length:,} of {state.added:,} entries are in Redis"
    return f"{'on' if state.on else 'off'}; {entries}; {read}"


def _stop_event() -> threading.Event:
    """Return an event that the first SIGTERM or SIGINT sets; a second one ends the process."""
    stopped = threading.Event()

    def stop_once(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop_once)
    return stopped
