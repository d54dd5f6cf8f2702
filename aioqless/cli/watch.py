"""Watches jobs until they have ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import typer
from redis.exceptions import RedisError

from aioqless.cli.exit_codes import JOB_FAILED
from aioqless.cli.presentation.event_output import print_event, print_outcome
from aioqless.cli.presentation.job_detail import suggest_next_steps
from aioqless.cli.presentation.printing import make_console, print_hint
from aioqless.client import Client
from aioqless.client.coverage import find_wait
from aioqless.client.events import Stream
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.validation import plain

POLL = 0.05  # seconds between two looks
PICKUP = 0.5  # seconds in which an idle worker takes a job, or leaves it to others
LAST_EVENTS = 0.05  # seconds in which the last events of an ended job arrive


@asynccontextmanager
async def watch_jobs(client: Client, jids: Sequence[str], *, wait: bool) -> AsyncIterator[None]:
    """Print the events of jobs from before the block until each job is complete or failed.

    Without `wait`, nothing is printed.

    Raises:
        typer.Exit: if a job failed.
    """
    if not wait:
        yield
        return
    async with client.events(jid=jids) as events:
        began = time.time()
        yield
        # Not earlier: what the block prints, such as the jid, comes first.
        printing = asyncio.create_task(_print_events(events))
        try:
            ended = [await client.jobs.wait(jid) for jid in jids]
            await asyncio.sleep(LAST_EVENTS)
        finally:
            await cancel_and_wait(printing)
    for job in ended:
        print_outcome(job, time.time() - began)
    failed = [job for job in ended if job.state == "failed"]
    if failed:
        print_hint(f"\n{suggest_next_steps(failed[0])}")
        raise typer.Exit(JOB_FAILED)


async def warn_if_left(client: Client, jid: str) -> None:
    """Print a warning if workers leave a new job alone: none serves its queue, or knows its klass.

    A worker that doesn't know a klass says so when it has popped the job.
    """
    end = time.monotonic() + PICKUP
    with suppress(RedisError):  # a user that may put needn't be allowed to look
        while wait := await find_wait(client.internals.store, jid):
            if wait.reason in ("no_worker", "unknown_klass"):
                text = plain(f"{jid}: {wait}")
                make_console(errors=True).print(text, style="yellow", markup=False, soft_wrap=True)
                return
            if not (wait.reason or wait.running) or time.monotonic() >= end:
                return
            await asyncio.sleep(POLL)


async def _print_events(events: Stream) -> None:
    async for event in events:
        print_event(event, errors=True)
