"""Watching jobs until they are through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from aioqless.cli.app import FAILED
from aioqless.cli.presentation.formatting import STYLES, brief, clock, plain, span
from aioqless.cli.presentation.job_detail import next_steps
from aioqless.cli.presentation.printing import console, hint
from aioqless.client import Client
from aioqless.client.events import AnyEvent, Missed, Stream
from aioqless.client.job import Job
from aioqless.waiting import cancel_and_wait

Wait = Annotated[
    bool,
    typer.Option("--wait", help=f"Watch until it is complete; exit code {FAILED} if it fails."),
]
SOON = 0.05  # seconds

_STYLES = {
    "completed": STYLES["complete"],
    "put": STYLES["waiting"],
    "lock_lost": "yellow",
    "stalled": "yellow",
    "missed": "reverse",
}


def line_of(event: AnyEvent) -> str:
    """What an event says, besides its kind."""
    if isinstance(event, Missed):
        return f"what happened in {span(event.until - event.since)} was not heard: {brief(event.why, 100)}"
    told = [
        (name, value)
        for name, value in vars(event).items()
        if name not in ("kind", "when", "jid") and value not in (None, {})
    ]
    jid = getattr(event, "jid", None)
    return "  ".join(
        [
            *([plain(jid)] if jid else []),
            *(f"{name}={brief(_said(name, value), 100)}" for name, value in told),
        ]
    )


def _said(name: str, value: object) -> str:
    """A traceback says in its last line what happened."""
    return (str(value).strip().splitlines() or [""])[-1] if name == "message" else str(value)


def tell(event: AnyEvent, *, errors: bool = False) -> None:
    """Print an event for a person."""
    from rich.text import Text

    style = _STYLES.get(event.kind, STYLES.get(event.kind, ""))
    text = Text.assemble(
        (f"{clock(event.when)[11:]}  ", "dim"), (f"{plain(event.kind):<12}", style), line_of(event)
    )
    console(errors=errors).print(text, soft_wrap=True)


@asynccontextmanager
async def watched(client: Client, jids: Sequence[str], *, wait: bool) -> AsyncIterator[None]:
    """Tell what happens to jobs, from before the block to when each is complete or failed; without
    `wait`, nothing of this. Raises typer.Exit when one failed."""
    if not wait:
        yield
        return
    async with client.events(jid=jids) as events:
        telling = asyncio.create_task(_tell(events))
        began = time.time()
        try:
            yield
            ended = [await client.jobs.wait(jid) for jid in jids]
            await asyncio.sleep(SOON)  # what the subscription still has to say of it
        finally:
            await cancel_and_wait(telling)
    for job in ended:
        _tell_end(job, time.time() - began)
    failed = [job for job in ended if job.state == "failed"]
    if failed:
        hint(f"\n{next_steps(failed[0])}")
        raise typer.Exit(FAILED)


async def _tell(events: Stream) -> None:
    async for event in events:
        tell(event, errors=True)


def _tell_end(job: Job, seconds: float) -> None:
    from rich.text import Text

    state = str(job.state)
    end = Text.assemble(plain(job.jid), "  ", (state, STYLES[state]), f"  after {span(seconds)}")
    if job.failure and state == "failed":
        lines = job.failure.message.strip().splitlines() or [""]
        end.append(f"  {plain(job.failure.group)}: {brief(lines[-1], 200)}")
    console(errors=True).print(end, soft_wrap=True)
