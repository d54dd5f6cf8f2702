"""Recurring jobs: recur, and recur put, pause, resume, run, cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from aioqless.cli.app import Json, Namespace, QueueName, Url, app, run
from aioqless.cli.presentation.formatting import plain, span
from aioqless.cli.presentation.json_input import checked, text_of
from aioqless.cli.presentation.printing import show, table
from aioqless.cli.presentation.prompts import Yes, confirm
from aioqless.client import Client
from aioqless.client.recurring import RecurOptions, RecurringJob
from aioqless.errors import AioqlessError

recurring = typer.Typer(
    help="Recurring jobs. Without a command: list them.", invoke_without_command=True
)
app.add_typer(recurring, name="recur")
app.add_typer(recurring, name="recurring", hidden=True)  # what it was called first
Jid = Annotated[str, typer.Argument(metavar="JID", help="`aioqless recur` shows them.")]
Cron = Annotated[str | None, typer.Option(help="When, such as '0 9 * * mon-fri'.")]


@recurring.callback()
def listed(
    context: typer.Context, json: Json = False, url: Url = None, namespace: Namespace = "ql"
) -> None:
    """Recurring jobs: without a command, list them with when each is next due (UTC)."""
    if context.invoked_subcommand:
        return

    async def act(client: Client) -> None:
        found = [job async for job in client.recurring()]
        if json:
            show([_shape(job) for job in found])
        else:
            columns = ["next (UTC)", "jid", "queue", "when", "klass", "declared"]
            table(
                columns,
                [_row(job) for job in found],
                empty="No recurring jobs: aioqless recur put, or @aioqless.job(every=60)",
            )

    run(url, namespace, act)


def _row(job: RecurringJob) -> tuple[str, ...]:
    when = f"every {span(job.interval or 0)}" if job.cron is None else f"{job.cron} {job.timezone}"
    due = (
        "paused"
        if job.paused
        else "-"
        if job.next is None
        else f"{datetime.fromtimestamp(job.next, UTC):%Y-%m-%d %H:%M:%S}"
    )
    return due, job.jid, job.queue, when, job.klass, "" if job.declared is None else "declared"


def _shape(job: RecurringJob) -> dict[str, Any]:
    every = (
        {"every": job.interval}
        if job.cron is None
        else {"cron": job.cron, "timezone": job.timezone}
    )
    told = {
        "jid": job.jid,
        "queue": job.queue,
        "klass": job.klass,
        "next": job.next,
        "paused": job.paused,
        "declared": job.declared,
    }
    return {**told, **every}


@recurring.command(
    epilog="Example: aioqless recur put mail app.jobs.digest --cron '0 9 * * mon-fri'"
)
def put(
    queue: QueueName,
    klass: Annotated[str, typer.Argument(metavar="KLASS")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="JSON; - reads what comes in, @FILE a file.")
    ] = "null",
    every: Annotated[float | None, typer.Option(help="Seconds from one to the next.")] = None,
    cron: Cron = None,
    timezone: Annotated[str | None, typer.Option(help="Of --cron; default: UTC.")] = None,
    jid: Annotated[
        str | None, typer.Option(help="Default: a new one. One that exists is changed.")
    ] = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put a job again and again; prints the jid of the recurring job."""
    if (every is None) == (cron is None):
        raise typer.BadParameter("say either --every or --cron")
    sent = checked(text_of(data))
    options: RecurOptions = {"jid": jid} if jid else {}
    if every is not None:
        options["every"] = every
    if cron is not None:
        options["cron"] = cron
    if timezone is not None:
        options["timezone"] = timezone

    async def act(client: Client) -> None:
        print((await client.queue(queue).recur(klass, sent, **options)).jid)

    run(url, namespace, act)


@recurring.command()
def pause(jid: Jid, url: Url = None, namespace: Namespace = "ql") -> None:
    """No more instances until it is resumed, also when workers that declare it start anew."""
    _with(jid, url, namespace, lambda job: job.pause())


@recurring.command()
def resume(jid: Jid, url: Url = None, namespace: Namespace = "ql") -> None:
    """Go on from now; nothing is made up for."""
    _with(jid, url, namespace, lambda job: job.resume())


@recurring.command("run")
def run_now(jid: Jid, url: Url = None, namespace: Namespace = "ql") -> None:
    """Make an instance at once; prints its jid. The clock goes on as it was."""

    async def act(job: RecurringJob) -> None:
        print(await job.run_now())

    _with(jid, url, namespace, act)


@recurring.command()
def cancel(jid: Jid, yes: Yes = False, url: Url = None, namespace: Namespace = "ql") -> None:
    """Take it off; instances that were made stay. One that code declares comes back when such a
    worker starts: pause it instead."""

    async def act(job: RecurringJob) -> None:
        confirm(f"Take {plain(jid)} off?", yes=yes)
        await job.cancel()

    _with(jid, url, namespace, act)


def _with(
    jid: str, url: str | None, namespace: str, act: Callable[[RecurringJob], Awaitable[None]]
) -> None:
    async def found(client: Client) -> None:
        job = await client.jobs.recurring(jid)
        if job is None:
            raise AioqlessError(f"there is no recurring job {jid!r}")
        await act(job)

    run(url, namespace, found)
