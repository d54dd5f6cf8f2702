"""Queues and what failed in them: queues, failed, pause, unpause, clear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, get_args

import typer

from aioqless.cli.app import Count, Json, Namespace, Offset, QueueName, Url, app, run
from aioqless.cli.presentation.completion import group_names, queue_names
from aioqless.cli.presentation.formatting import ago, brief, many, plain
from aioqless.cli.presentation.json_output import listed, text_of
from aioqless.cli.presentation.printing import console, hint, say, show, table
from aioqless.cli.presentation.prompts import DryRun, Yes, confirm, progress
from aioqless.cli.presentation.suggestions import instead, unheard_of
from aioqless.client import Client
from aioqless.client.clearing import QUEUED, Cleared, ClearState
from aioqless.client.job import Job
from aioqless.client.job.summaries import Glance
from aioqless.client.queue import Queue
from aioqless.errors import AioqlessError

COLUMNS = ("name", "waiting", "running", "stalled", "scheduled", "depends", "recurring", "paused")
MOST = 100  # groups of which more than their count is told
STATES = (*get_args(ClearState), "all")
State = Annotated[
    list[str] | None,
    typer.Option(
        help=f"{', '.join(STATES)}; repeatable. Default: all but failed.",
        autocompletion=lambda: list(STATES),
    ),
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="QUEUE...", help="Queues by name.", autocompletion=queue_names),
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
            show(found)
            return
        table(
            COLUMNS,
            [[getattr(counts, column) for column in COLUMNS] for counts in found],
            empty="No queues yet: the first put makes one.",
        )

    run(url, namespace, act)


@app.command(epilog="Example: aioqless failed mail-SMTPError")
def failed(
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="[GROUP]", help="Show the jobs of this group.", autocompletion=group_names
        ),
    ] = None,
    count: Count = 25,
    offset: Offset = 0,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show how many jobs failed in each group, or what went wrong in one."""

    async def act(client: Client) -> None:
        if group is None:
            await _groups(client, json)
            return
        total, found = await client.jobs.failed_in(group, start=offset, limit=count)
        if json:
            show({"total": total, "jobs": [listed(job) for job in found]})
        if not total:
            raise AioqlessError(
                f"nothing has failed in {plain(group)}{instead(group, await client.jobs.failed())}"
            )
        if json:
            return
        for job in found:
            _tell(job)
        say(f"{len(found)} of {many(total, 'job')}")
        if found:
            hint(
                f"aioqless get {plain(found[0].jid)}   look at one\naioqless retry --group {plain(group)}   run all of them again"
            )

    run(url, namespace, act)


async def _groups(client: Client, json: bool) -> None:
    counts = dict(
        sorted((await client.jobs.failed()).items(), key=lambda each: (-each[1], each[0]))
    )
    if json:
        show(counts)
        return
    latest = (
        {each.group: each.latest for each in await client.jobs.failures(*list(counts)[:MOST])}
        if counts
        else {}
    )
    rows = [(count, name, *_latest(latest.get(name))) for name, count in counts.items()]
    table(["count", "group", "latest", "what happened"], rows, empty="Nothing has failed.")
    if counts:
        hint(f"\naioqless failed {plain(next(iter(counts)))}   what went wrong there")


def _latest(job: Glance | None) -> tuple[str, str]:
    """When it failed, and of what."""
    if job is None:
        return "", ""
    return ago(job.failed), brief((job.message.strip().splitlines() or [""])[-1], 100)


def _tell(job: Job) -> None:
    from rich.text import Text

    when = f"  {ago(job.failure.when)}" if job.failure else ""
    console().print(
        Text.assemble(
            (plain(job.jid), "bold"),
            "  ",
            plain(job.klass),
            (when, "dim"),
            "  ",
            brief(text_of(job), 120),
        )
    )
    lines = [
        line
        for line in (job.failure.message if job.failure else "").splitlines()
        if line.strip(" ^~")
    ]
    for line in lines[-3:]:
        console().print(Text(f"  {brief(line, 200)}", style="red"))


@app.command()
def pause(queue: Names, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let nobody pop from queues; what runs goes on."""
    _each(queue, url, namespace, "paused", Queue.pause)


@app.command()
def unpause(queue: Names, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let everybody pop from queues again."""
    _each(queue, url, namespace, "unpaused", Queue.unpause)


@app.command(
    epilog="Examples: aioqless clear mail --dry-run; aioqless clear mail --state failed; aioqless clear mail --state all --yes"
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
    """Empty a queue: delete its jobs for good. Running jobs stay, and so do jobs that others depend
    on."""
    if unknown := [each for each in state or () if each not in STATES]:
        raise typer.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(STATES)}", param_hint="--state"
        )
    states = (
        [each for each in get_args(ClearState) if each in state or "all" in state]
        if state
        else list(QUEUED)
    )

    async def act(client: Client) -> None:
        found = (
            await _clear(client.queue(queue), states, dry_run=True) if dry_run or not yes else None
        )
        if (
            found
            and not found.canceled + found.kept
            and (unheard := await unheard_of(client, queue))
        ):
            raise AioqlessError(unheard)
        if found and found.canceled and not dry_run:
            confirm(
                f"Delete {many(found.canceled, 'job')} of {plain(queue)} ({', '.join(states)})?",
                yes=yes,
            )
        cleared = (
            found
            if found and (dry_run or not found.canceled)
            else await _clear(client.queue(queue), states, dry_run=False)
        )
        if json:
            show({"queue": queue, "dry_run": dry_run, **asdict(cleared)})
        else:
            say(
                f"{many(cleared.canceled, 'job')} of {plain(queue)} {'would be ' if dry_run else ''}deleted"
            )
        if cleared.kept:
            jid, dependent = next(iter(cleared.kept_for.items()))
            stay = f"{many(cleared.kept, 'job')} {'would stay' if dry_run else 'stayed'}, since jobs that aren't deleted depend on them"
            raise AioqlessError(
                f"{stay}: {plain(dependent)} on {plain(jid)}"
                + (", for one" if cleared.kept > 1 else "")
            )

    run(url, namespace, act)


async def _clear(queue: Queue, states: list[ClearState], *, dry_run: bool) -> Cleared:
    with progress("looking" if dry_run else "deleting", None) as step:
        return await queue.clear(states, dry_run=dry_run, step=step)


def _each(
    names: list[str],
    url: str | None,
    namespace: str,
    done: str,
    act: Callable[[Queue], Awaitable[None]],
) -> None:
    async def all_of_them(client: Client) -> None:
        await asyncio.gather(*(act(client.queue(name)) for name in names))
        for name in names:
            unheard = await unheard_of(client, name)
            say(f"{plain(name)} {done}" + (f"; {unheard}" if unheard else ""))

    run(url, namespace, all_of_them)
