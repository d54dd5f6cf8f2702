"""What is done to jobs wherever they are: cancel, move, tag, track."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from aioqless.cli.app import Count, Json, Namespace, Offset, QueueName, Url, app, run
from aioqless.cli.commands.retry import Group, Jids
from aioqless.cli.presentation.completion import failed_jids, tag_names
from aioqless.cli.presentation.formatting import brief, many, plain
from aioqless.cli.presentation.json_output import found, listed, text_of
from aioqless.cli.presentation.printing import say, show, table
from aioqless.cli.presentation.prompts import DryRun, Yes, confirm, progress
from aioqless.client import Client
from aioqless.errors import AioqlessError

STEP, PAGE = 200, 1000  # jobs
Tag = Annotated[
    str | None, typer.Option("--tag", help="All with this tag.", autocompletion=tag_names)
]
Jid = Annotated[str, typer.Argument(metavar="JID", autocompletion=failed_jids)]


@app.command(
    epilog="Examples: aioqless cancel 4f2a…; aioqless cancel --group mail-SMTPError --dry-run"
)
def cancel(
    jid: Jids = None,
    group: Group = None,
    tag: Tag = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Delete jobs for good: some by jid, a failure group, or what has a tag. Complete ones stay."""
    if sum((bool(jid), group is not None, tag is not None)) != 1:
        raise typer.BadParameter("say which: jids, --group or --tag")

    async def act(client: Client) -> None:
        jids = (
            [(await found(client, each)).jid for each in jid]
            if jid
            else await _jids(client, group, tag)
        )
        which = f"{len(jids):,} jobs" if len(jids) != 1 else f"job {plain(jids[0])}"
        if dry_run or not jids:
            say(f"{which} would be deleted" if jids else "no such jobs")
            return
        confirm(f"Delete {which}?", yes=yes)
        gone, held = await _cancel(client, jids)
        say(
            f"{many(gone, 'job')} deleted"
            + (
                f", {many(len(jids) - gone - held, 'complete job')} left"
                if len(jids) > gone + held
                else ""
            )
        )
        if held:
            raise AioqlessError(
                f"{many(held, 'job')} stayed, since others depend on them: cancel those too, in the same command"
            )

    run(url, namespace, act)


async def _jids(client: Client, group: str | None, tag: str | None) -> list[str]:
    """All that are meant, read before the first goes: what comes meanwhile stays."""
    jids: list[str] = []
    with progress("looking", None) as step:
        while True:
            if group is not None:
                page = await client.jobs.failed_jids(group, offset=len(jids), count=PAGE)
            else:
                _, page = await client.jobs.tagged(tag or "", offset=len(jids), count=PAGE)
            jids += page
            step(len(page))
            if len(page) < PAGE:
                return list(dict.fromkeys(jids))


async def _cancel(client: Client, jids: Sequence[str]) -> tuple[int, int]:
    """Return how many were canceled, and how many stayed since others depend on them."""
    with progress("deleting", len(jids)) as step:
        if len(jids) <= STEP:  # all or none, and the error names the dependent
            canceled = len(await client.jobs.cancel(*jids))
            step(len(jids))
            return canceled, 0
        result = await client.jobs.cancel_many(jids, step=step)
    return result.canceled, len(result.kept)


@app.command()
def move(
    jid: Jid,
    queue: QueueName,
    delay: Annotated[float, typer.Option(help="Seconds until it may run.")] = 0,
    priority: Annotated[
        float | None, typer.Option(help="Lower runs sooner; default: as it was.")
    ] = None,
    yes: Yes = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put a job into another queue, wherever it is now, to run there. One that runs is taken from
    its worker, after asking."""

    async def act(client: Client) -> None:
        job = await found(client, jid)
        if job.state == "running":
            confirm(
                f"{plain(job.jid)} is running on {plain(job.worker)}, which will lose it. Move it?",
                yes=yes,
            )
        await job.move(queue, delay=delay, priority=priority)
        say(f"{plain(job.jid)} moved from {plain(job.queue or 'nowhere')} to {plain(queue)}")

    run(url, namespace, act)


@app.command(
    epilog="Examples: aioqless tag; aioqless tag 4f2a… urgent; aioqless tag 4f2a… urgent --remove"
)
def tag(
    jid: Annotated[str | None, typer.Argument(metavar="[JID]", autocompletion=failed_jids)] = None,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="[TAG]...", autocompletion=tag_names)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take them off it.")] = False,
    json: Json = False,
    count: Count = 100,
    offset: Offset = 0,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put tags on a job, and show those it has. Without a job: the tags that two jobs or more have,
    the commonest first."""

    async def act(client: Client) -> None:
        if jid is None:
            there = await client.jobs.tags(offset=offset, count=count)
        else:
            job = await found(client, jid)
            there = job.tags if not tags else await (job.untag(*tags) if remove else job.tag(*tags))
        if json:
            show(there)
        else:
            say("\n".join(map(plain, there)) or "No tags.")

    run(url, namespace, act)


@app.command(epilog="Examples: aioqless track; aioqless track 4f2a…; aioqless track 4f2a… --off")
def track(
    jid: Jids = None,
    off: Annotated[bool, typer.Option("--off", help="Track them no longer.")] = False,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Keep an eye on jobs: what happens to them is told one by one (`aioqless tail --tracked`).
    Without jids: list the tracked."""

    async def act(client: Client) -> None:
        for each in jid or ():
            await (client.jobs.untrack(each) if off else client.jobs.track(each))
            say(f"{plain(each)} is {'no longer ' if off else ''}tracked")
        if jid:
            return
        jobs, gone = await client.jobs.tracked()
        if json:
            show({"jobs": [listed(job) for job in jobs], "gone": gone})
            return
        rows = [
            (job.jid, job.klass, str(job.state), job.queue, brief(text_of(job), 60)) for job in jobs
        ]
        rows += [(each, "", "gone", "", "") for each in gone]
        table(
            ["jid", "klass", "state", "queue", "data"],
            rows,
            empty="No job is tracked: aioqless track JID",
        )

    run(url, namespace, act)
