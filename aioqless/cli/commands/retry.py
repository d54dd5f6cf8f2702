"""Failed jobs run again: retry, edit, unfail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from aioqless.cli.app import Namespace, Url, app, run
from aioqless.cli.presentation.completion import failed_jids, group_names, queue_names
from aioqless.cli.presentation.event_output import Wait, watched
from aioqless.cli.presentation.formatting import many, plain
from aioqless.cli.presentation.json_input import checked, edited, text_of
from aioqless.cli.presentation.json_output import found
from aioqless.cli.presentation.printing import hint, say
from aioqless.cli.presentation.prompts import DryRun, progress
from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.errors import AioqlessError

Jids = Annotated[list[str] | None, typer.Argument(metavar="[JID]...", autocompletion=failed_jids)]
Group = Annotated[
    str | None,
    typer.Option("--group", help="All that failed in this group.", autocompletion=group_names),
]
Into = Annotated[
    str | None,
    typer.Option("--queue", help="Where; default: where each failed.", autocompletion=queue_names),
]
Most = Annotated[
    int | None, typer.Option("--count", help="So many at most, the oldest first.", min=1)
]


@app.command(
    epilog="Examples: aioqless retry 4f2a… --wait; aioqless retry --group mail-SMTPError --dry-run"
)
def retry(
    jid: Jids = None,
    group: Group = None,
    everything: Annotated[bool, typer.Option("--all", help="All that failed.")] = False,
    queue: Into = None,
    count: Most = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let failed jobs run again: some by jid, a group, or all."""
    if sum((bool(jid), group is not None, everything)) != 1:
        raise typer.BadParameter("say which: jids, --group or --all")
    if wait and not jid:
        raise typer.BadParameter("--wait is for jobs by jid")

    async def act(client: Client) -> None:
        if jid:
            jobs = [
                _failed(await found(client, each)) for each in jid
            ]  # all, before the first is touched
            async with watched(client, [job.jid for job in jobs], wait=wait and not dry_run):
                await _again(client, jobs, queue, dry_run)
            return
        for name in sorted(await client.jobs.failed()) if group is None else [group]:
            await _group(client, name, queue, count, dry_run)

    run(url, namespace, act)


@app.command(
    epilog='Examples: aioqless edit 4f2a…; aioqless edit 4f2a… --data \'{"to": "ada@example.org"}\' --wait'
)
def edit(
    jid: Annotated[str, typer.Argument(metavar="JID", autocompletion=failed_jids)],
    data: Annotated[
        str | None,
        typer.Option(
            help="JSON, - or @FILE; default: an editor opens, as $VISUAL or $EDITOR says."
        ),
    ] = None,
    wait: Wait = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Change the data of a failed job, and let it run again."""

    async def act(client: Client) -> None:
        job = _failed(await found(client, jid))
        text = edited(job.text, job.jid) if data is None else text_of(data)
        if text is None:
            raise AioqlessError(
                "the data are as they were: nothing was done; `aioqless retry` runs it again as it is"
            )
        sent = checked(text)
        async with watched(client, [job.jid], wait=wait):
            await client.jobs.retry(job.jid, data=sent, was=job)
            say(f"{plain(job.jid)} runs again in {plain(job.queue)}, with the new data")
        if not wait:
            hint(f"aioqless tail --jid {plain(job.jid)}   watch it")

    run(url, namespace, act)


@app.command()
def unfail(
    queue: Annotated[str, typer.Argument(metavar="QUEUE", autocompletion=queue_names)],
    group: Annotated[str, typer.Argument(metavar="GROUP", autocompletion=group_names)],
    count: Annotated[int, typer.Option(help="How many at most.", min=1)] = 1000,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let failed jobs of a group run again, in a queue; prints how many. (`retry` lets each run
    where it failed.)"""

    async def act(client: Client) -> None:
        with progress(f"retrying {plain(group)}", count) as step:
            print(await client.jobs.retry_group(group, count, queue=queue, step=step))

    run(url, namespace, act)


def _failed(job: Job) -> Job:
    if job.state != "failed":
        raise AioqlessError(f"job {job.jid!r} has not failed: it is {job.state}")
    return job


async def _again(client: Client, jobs: Sequence[Job], queue: str | None, dry_run: bool) -> None:
    for job in jobs:
        if not dry_run:
            await (client.jobs.retry(job.jid) if queue is None else job.move(queue))
        say(
            f"{plain(job.jid)} {'would run' if dry_run else 'runs'} again in {plain(queue or job.queue)}"
        )


async def _group(
    client: Client, group: str, queue: str | None, count: int | None, dry_run: bool
) -> None:
    total, _ = await client.jobs.failed_in(group, limit=0)
    most = min(total, count or total)
    if dry_run or not total:
        say(
            f"{many(most, 'job')} of {plain(group)} would run again"
            if total
            else f"nothing has failed in {plain(group)}"
        )
        return
    with progress(f"retrying {plain(group)}", most) as step:
        done = await client.jobs.retry_group(group, most, queue=queue, step=step)
    say(f"{many(done, 'job')} of {plain(group)} run again")
