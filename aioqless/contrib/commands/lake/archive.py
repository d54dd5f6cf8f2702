"""`aioqless pipeline archive`: the archive's stream goes to the lake."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from typing import Annotated

import typer

from aioqless.cli.app import REFUSED, Namespace, Url
from aioqless.cli.presentation.formatting import span
from aioqless.client import Client
from aioqless.client.archive import ArchiveState
from aioqless.contrib.commands.lake.shared import LAKE, LakeFolder, Trace, pipeline, plainly, tell
from aioqless.log import output


@pipeline.command()
def archive(
    url: Url = None,
    namespace: Namespace = "ql",
    lake: LakeFolder = LAKE,
    every: Annotated[
        float | None,
        typer.Option(help="Go on, and look every so many seconds; default: once.", min=0.1),
    ] = None,
    entries: Annotated[
        int,
        typer.Option(help="The most entries of a batch, which is one file.", min=1, max=1_000_000),
    ] = 50_000,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Be the one that trims the stream, whoever it was before."
        ),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status", help="Say how much waits for an archiver; exit code 1 if none comes."
        ),
    ] = False,
    trace: Trace = False,
) -> None:
    """Take what ended from the archive's stream to the lake: what there is now, or on and on. A
    second SIGTERM ends it at once."""
    if status:
        state = asyncio.run(_state(url, namespace))
        trouble = state.trouble(time.time())
        print("\n".join(filter(None, [_told(state, time.time()), trouble])))
        raise typer.Exit(REFUSED if trouble else 0)
    with plainly(trace):
        from aioqless.contrib.lake.archiver import Archiver
        from aioqless.contrib.lake.lake import Lake
        from aioqless.contrib.lake.session import session

        output.protect()  # how far it is, on standard error
        target = Lake(lake, create=True)
        archiver = Archiver(
            session("aioqless archive"), target, url, namespace, entries=entries, tell=tell
        )
        stop = _told_to_stop()
        done = (
            archiver.once(stop, take_over=take_over)
            if every is None
            else archiver.continuously(stop, every=every, take_over=take_over)
        )
        print(
            f"{done.events:,} events in {done.batches:,} batches; {done.unreadable + done.missing:,} in quarantine, {done.swept:,} swept, "
            f"{done.lost:,} cut unread"
        )


async def _state(url: str | None, namespace: str) -> ArchiveState:
    async with Client(url, namespace=namespace) as client:
        return await client.archive.state()


def _told(state: ArchiveState, now: float) -> str:
    """How the archive is, in a line."""
    read = f"last read {span(now - state.at)} ago, by {state.reader}" if state.at else "never read"
    return f"{'on' if state.on else 'off'}; {state.length:,} of {state.added:,} entries are in Redis; {read}"


def _told_to_stop() -> threading.Event:
    """Set by the first SIGTERM or SIGINT; from then on these do what they usually do."""
    stop = threading.Event()

    def told(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    return stop
