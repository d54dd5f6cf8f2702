"""Recurring jobs: recur, and recur put, pause, resume, run, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from aioqless.cli.app import Act, App, Section, app
from aioqless.cli.json_input import read_data, validate_json
from aioqless.cli.options import Json, QueueName, Yes
from aioqless.cli.presentation.formatting import format_duration
from aioqless.cli.presentation.printing import print_json, print_table
from aioqless.cli.presentation.prompts import confirm
from aioqless.client import Client
from aioqless.client.put_options import RecurOptions, RecurringChanges
from aioqless.client.recurring import RecurringJob
from aioqless.errors import AioqlessError
from aioqless.validation import plain


class _Commands(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] == "list":
            raise typer.BadParameter("no such command 'list': `aioqless recur` alone lists them")
        return super().resolve_command(ctx, args)


recurring = App(
    cls=_Commands,
    help="Recurring jobs. Without a command: list them.",
    invoke_without_command=True,
)
app.add_typer(recurring, name="recur", rich_help_panel=Section.QUEUES)
RecurringJid = Annotated[str, typer.Argument(metavar="JID", help="`aioqless recur` lists them.")]
Cron = Annotated[
    str | None, typer.Option(help="A cron expression, such as '0 9 * * mon-fri', or @daily.")
]


# Of a job in JSON, besides its schedule.
FIELDS = (
    *("jid", "queue", "klass", "next", "paused", "declared"),
    *("until", "max_runs", "runs_left", "jitter", "ended"),
)


@recurring.callback()
def list_all(context: typer.Context, json: Json = False) -> Act | None:
    """List recurring jobs and when each is next due (UTC), unless a command is given."""
    if command := context.invoked_subcommand:
        given = [name for name in context.params if _is_on_command_line(context, name)]
        if given:
            option = f"--{given[0]}"
            raise typer.BadParameter(f"{option} goes after {command}: recur {command} {option}")
        return None

    async def act(client: Client) -> None:
        parts: Sequence[Client] = getattr(client, "partitions", (client,))
        found = [job for each in parts async for job in each.recurring.all()]
        if json:
            print_json([_job_fields(job) for job in found])
            return
        print_table(
            ["next (UTC)", "jid", "queue", "when", "klass", "declared"],
            [_row(job) for job in found],
            empty="No recurring jobs: aioqless recur put, or @aioqless.job(every=60)",
        )

    return act


def _is_on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _row(job: RecurringJob) -> tuple[str, ...]:
    if job.cron is None:
        schedule = f"every {format_duration(job.interval or 0)}"
    else:
        schedule = f"{job.cron} {job.timezone}"
    if job.jitter:
        schedule += f", up to {format_duration(job.jitter)} later"
    if job.runs_left is not None:
        schedule += f", {job.runs_left} of {job.max_runs} left"
    if job.until is not None:
        schedule += f", until {_format_time(job.until)}"
    if job.paused:
        due = "paused"
    elif job.ended:
        due = "ended"
    else:
        due = "-" if job.next is None else _format_time(job.next)
    return due, job.jid, job.queue, schedule, job.klass, "" if job.declared is None else "declared"


def _format_time(when: float) -> str:
    return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M:%S}"


def _job_fields(job: RecurringJob) -> dict[str, object]:
    if job.cron is None:
        schedule: dict[str, object] = {"every": job.interval}
    else:
        schedule = {"cron": job.cron, "timezone": job.timezone}
    return {name: getattr(job, name) for name in FIELDS} | schedule


@recurring.command(
    epilog="Example: aioqless recur put mail app.jobs.digest --jid digest --cron '0 9 * * mon-fri'"
)
def put(
    queue: QueueName,
    klass: Annotated[str, typer.Argument(metavar="KLASS")],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="JSON; - reads standard input, @FILE reads a file. Default: as before, else null.",
        ),
    ] = None,
    *,
    jid: Annotated[str, typer.Option(help="Its name; an existing recurring job is changed.")],
    every: Annotated[float | None, typer.Option(help="Interval in seconds.")] = None,
    cron: Cron = None,
    timezone: Annotated[
        str | None, typer.Option(help="Of --cron; default: as before, else UTC.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="When it ends, such as 2030-01-31T12:00+01:00.")
    ] = None,
    max_runs: Annotated[
        int | None, typer.Option(help="Number of instances after which it ends.")
    ] = None,
    jitter: Annotated[
        float | None, typer.Option(help="Maximum random delay of each instance, in seconds.")
    ] = None,
) -> Act:
    """Create a recurring job, or change the one with this jid; print its jid."""
    if (every is None) == (cron is None):
        raise typer.BadParameter("choose one: --every or --cron")
    body = None if data is None else validate_json(read_data(data))
    options: RecurOptions = {
        "jid": jid,
        "timezone": timezone,
        "until": None if until is None else _read_time(until),
        "max_runs": max_runs,
        "jitter": jitter,
    }
    if every is not None:
        options["every"] = every
    if cron is not None:
        options["cron"] = cron

    async def act(client: Client) -> None:
        before = await client.recurring.get(jid)
        if before and (before.cron is None) == (cron is None):
            await before.update(**_read_changes(queue, klass, data is not None, body, options))
            print(jid)
            return
        kept = before.data if before and data is None else body
        print((await client.queue(queue).recur(klass, kept, **options)).jid)

    return act


def _read_changes(
    queue: str, klass: str, has_data: bool, data: object, options: RecurOptions
) -> RecurringChanges:
    """Return what a call changes of a recurring job that exists."""
    changes: Any = {name: value for name, value in options.items() if value is not None}
    del changes["jid"]
    changes |= {"queue": queue, "klass": klass}
    if has_data:
        changes["data"] = data
    return cast("RecurringChanges", changes)


def _read_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} must be a time such as 2030-01-31T12:00+01:00", param_hint="--until"
        ) from None


@recurring.command()
async def pause(client: Client, jid: RecurringJid) -> None:
    """Pause a recurring job; it stays paused when workers that declare it start."""
    await (await _find(client, jid)).pause()


@recurring.command()
async def resume(client: Client, jid: RecurringJid) -> None:
    """Resume a recurring job; runs missed during the pause are skipped."""
    await (await _find(client, jid)).resume()


@recurring.command("run")
async def run_now(client: Client, jid: RecurringJid) -> None:
    """Put an instance now; print its jid. The schedule is unchanged."""
    print(await (await _find(client, jid)).run_now())


@recurring.command()
async def cancel(client: Client, jid: RecurringJid, yes: Yes = False) -> None:
    """Delete a recurring job; its instances stay.

    If code declares it, the next worker that starts creates it again: pause it instead.
    """
    job = await _find(client, jid)
    confirm(f"Delete recurring job {plain(jid)}?", yes=yes)
    await job.cancel()


async def _find(client: Client, jid: str) -> RecurringJob:
    job = await client.recurring.get(jid)
    if job is None:
        raise AioqlessError(f"there is no recurring job {jid!r}")
    return job
