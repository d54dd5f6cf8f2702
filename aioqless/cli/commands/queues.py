"""Queues and their failures: queues, failed, pause, unpause, clear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, get_args

import typer

from aioqless.cli.app import app
from aioqless.cli.completion import complete_group, complete_queue
from aioqless.cli.connect import run_with_client
from aioqless.cli.lookup import describe_unknown_queue
from aioqless.cli.options import Count, DryRun, Json, Namespace, Offset, QueueName, Url, Yes
from aioqless.cli.presentation.formatting import format_relative_time, pluralize, shorten
from aioqless.cli.presentation.json_output import data_text, job_summary
from aioqless.cli.presentation.printing import (
    make_console,
    print_hint,
    print_json,
    print_table,
    print_text,
)
from aioqless.cli.presentation.prompts import confirm, show_progress
from aioqless.cli.presentation.suggestions import suggest
from aioqless.client import Client
from aioqless.client.clearing import QUEUED, Cleared, ClearState
from aioqless.client.job import Job
from aioqless.client.job.summaries import Glance
from aioqless.client.queue import Queue
from aioqless.errors import AioqlessError
from aioqless.validation import plain

COLUMNS = ("name", "waiting", "running", "stalled", "scheduled", "depends", "recurring", "paused")
MAX_DETAILED = 100  # groups whose latest failure is shown beside the count
STATES = (*get_args(ClearState), "all")
State = Annotated[
    list[str] | None,
    typer.Option(
        help=f"{', '.join(STATES)}; repeatable. Default: all but failed.",
        autocompletion=lambda: list(STATES),
    ),
]
QueueNames = Annotated[
    list[str],
    typer.Argument(metavar="QUEUE...", help="Queues by name.", autocompletion=complete_queue),
]


@app.command()
def queues(
    count: Count = 1000,
    offset: Offset = 0,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show how many jobs each queue has in each state."""

    async def act(client: Client) -> None:
        found = await client.queues(offset=offset, count=count)
        if json:
            print_json(found)
            return
        print_table(
            COLUMNS,
            [[getattr(counts, column) for column in COLUMNS] for counts in found],
            empty="No queues yet: the first put makes one.",
        )

    run_with_client(url, namespace, act)


@app.command(epilog="Example: aioqless failed mail-SMTPError")
def failed(
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="[GROUP]", help="Show the jobs of this group.", autocompletion=complete_group
        ),
    ] = None,
    count: Count = 25,
    offset: Offset = 0,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show the failure groups, or the failed jobs of one."""

    async def act(client: Client) -> None:
        if group is None:
            await _print_groups(client, json)
            return
        total, found = await client.jobs.failed_in(group, start=offset, limit=count)
        if json:
            print_json({"total": total, "jobs": [job_summary(job) for job in found]})
        if not total:
            similar = suggest(group, await client.jobs.failed())
            raise AioqlessError(f"nothing has failed in {plain(group)}{similar}")
        if json:
            return
        for job in found:
            _print_failed_job(job)
        print_text(f"{len(found)} of {pluralize(total, 'job')}")
        if found:
            print_hint(
                f"aioqless get {plain(found[0].jid)}   look at one\n"
                f"aioqless retry --group {plain(group)}   run all of them again"
            )

    run_with_client(url, namespace, act)


async def _print_groups(client: Client, json: bool) -> None:
    counts = dict(
        sorted((await client.jobs.failed()).items(), key=lambda each: (-each[1], each[0]))
    )
    if json:
        print_json(counts)
        return
    latest: dict[str, Glance | None] = {}
    if counts:
        groups = await client.jobs.failures(*list(counts)[:MAX_DETAILED])
        latest = {group.group: group.latest for group in groups}
    rows = [(count, name, *_latest_columns(latest.get(name))) for name, count in counts.items()]
    print_table(["count", "group", "latest", "what happened"], rows, empty="Nothing has failed.")
    if counts:
        print_hint(f"\naioqless failed {plain(next(iter(counts)))}   what went wrong there")


def _latest_columns(job: Glance | None) -> tuple[str, str]:
    """Return when the latest job of a group failed, and the last line of its message."""
    if job is None:
        return "", ""
    lines = job.message.strip().splitlines() or [""]
    return format_relative_time(job.failed), shorten(lines[-1], 100)


def _print_failed_job(job: Job) -> None:
    from rich.text import Text

    when = f"  {format_relative_time(job.failure.when)}" if job.failure else ""
    make_console().print(
        Text.assemble(
            (plain(job.jid), "bold"),
            "  ",
            plain(job.klass),
            (when, "dim"),
            "  ",
            shorten(data_text(job), 120),
        )
    )
    message = job.failure.message if job.failure else ""
    lines = [line for line in message.splitlines() if line.strip(" ^~")]
    for line in lines[-3:]:
        make_console().print(Text(f"  {shorten(line, 200)}", style="red"))


@app.command()
def pause(queue: QueueNames, url: Url = None, namespace: Namespace = "ql") -> None:
    """Pause queues. Running jobs are not affected."""
    _act_on_each(queue, url, namespace, "paused", Queue.pause)


@app.command()
def unpause(queue: QueueNames, url: Url = None, namespace: Namespace = "ql") -> None:
    """Resume paused queues."""
    _act_on_each(queue, url, namespace, "unpaused", Queue.unpause)


@app.command(
    epilog="Examples: aioqless clear mail --dry-run; aioqless clear mail --state failed; "
    "aioqless clear mail --state all --yes",
)
def clear(
    queue: QueueName,
    state: State = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Delete the jobs of a queue, except running ones and those that others depend on."""
    states = _checked_states(state)

    async def act(client: Client) -> None:
        target = client.queue(queue)
        if dry_run or not yes:
            cleared = await _clear(target, states, dry_run=True)
            if not cleared.canceled + cleared.kept and (
                problem := await describe_unknown_queue(client, queue)
            ):
                raise AioqlessError(problem)
            if cleared.canceled and not dry_run:
                found = pluralize(cleared.canceled, "job")
                confirm(f"Delete {found} of {plain(queue)} ({', '.join(states)})?", yes=yes)
                cleared = await _clear(target, states, dry_run=False)
        else:
            cleared = await _clear(target, states, dry_run=False)
        _print_cleared(queue, cleared, dry_run=dry_run, json=json)

    run_with_client(url, namespace, act)


def _checked_states(names: list[str] | None) -> list[ClearState]:
    if unknown := [each for each in names or () if each not in STATES]:
        raise typer.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(STATES)}", param_hint="--state"
        )
    if not names:
        return list(QUEUED)
    return [each for each in get_args(ClearState) if each in names or "all" in names]


def _print_cleared(queue: str, cleared: Cleared, *, dry_run: bool, json: bool) -> None:
    if json:
        print_json({"queue": queue, "dry_run": dry_run, **asdict(cleared)})
    else:
        deleted = "would be deleted" if dry_run else "deleted"
        print_text(f"{pluralize(cleared.canceled, 'job')} of {plain(queue)} {deleted}")
    if cleared.kept:
        jid, dependent = next(iter(cleared.kept_for.items()))
        kept = f"{pluralize(cleared.kept, 'job')} {'would stay' if dry_run else 'stayed'}"
        others = ", for one" if cleared.kept > 1 else ""
        raise AioqlessError(
            f"{kept}, since jobs that aren't deleted depend on them: "
            f"{plain(dependent)} on {plain(jid)}{others}"
        )


async def _clear(queue: Queue, states: list[ClearState], *, dry_run: bool) -> Cleared:
    with show_progress("looking" if dry_run else "deleting", None) as advance:
        return await queue.clear(states, dry_run=dry_run, step=advance)


def _act_on_each(
    names: list[str],
    url: str | None,
    namespace: str,
    done: str,
    act: Callable[[Queue], Awaitable[None]],
) -> None:
    async def act_on_all(client: Client) -> None:
        await asyncio.gather(*(act(client.queue(name)) for name in names))
        for name in names:
            problem = await describe_unknown_queue(client, name)
            print_text(f"{plain(name)} {done}" + (f"; {problem}" if problem else ""))

    run_with_client(url, namespace, act_on_all)
