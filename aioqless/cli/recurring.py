"""Recurring jobs: list, pause, resume, run, cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import typer

from aioqless.cli.app import Namespace, Url, app, run
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.recurring import RecurringJob

recurring = typer.Typer(help="Recurring jobs. Without a command: list them.", invoke_without_command=True)
app.add_typer(recurring, name="recurring")


@recurring.callback()
def listed(context: typer.Context, url: Url = None, namespace: Namespace = "ql") -> None:
    """Recurring jobs: without a command, list them with when each is next due (UTC)."""
    if context.invoked_subcommand:
        return

    async def act(client: Client) -> None:
        async for job in client.recurring():
            print(_line(job))

    run(url, namespace, act)


def _line(job: RecurringJob) -> str:
    when = f"every {job.interval:g} s" if job.cron is None else f"{job.cron} {job.timezone}"
    due = "paused" if job.paused else "-" if job.next is None else f"{datetime.fromtimestamp(job.next, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{due:<19}  {job.jid:<32}  {job.queue:<16}  {when}" + ("" if job.declared is None else "  declared")


@recurring.command()
def pause(jid: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """No more instances until it is resumed, also when workers that declare it start anew."""
    _with(jid, url, namespace, lambda job: job.pause())


@recurring.command()
def resume(jid: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """Go on from now; nothing is made up for."""
    _with(jid, url, namespace, lambda job: job.resume())


@recurring.command("run")
def run_now(jid: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """Make an instance at once; prints its jid. The clock goes on as it was."""

    async def act(job: RecurringJob) -> None:
        print(await job.run_now())

    _with(jid, url, namespace, act)


@recurring.command()
def cancel(jid: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """Take it off; instances that were made stay. One that code declares comes back when such a worker starts: pause it instead."""
    _with(jid, url, namespace, lambda job: job.cancel())


def _with(jid: str, url: str | None, namespace: str, act: Callable[[RecurringJob], Awaitable[None]]) -> None:
    async def found(client: Client) -> None:
        job = await client.jobs.recurring(jid)
        if job is None:
            raise AioqlessError(f"there is no recurring job {jid!r}")
        await act(job)

    run(url, namespace, found)
