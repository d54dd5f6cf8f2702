"""Actions on jobs in any state: cancel, move, priority, tag, track."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

import msgspec
import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_failed_jid, complete_tag
from aioqless.cli.job_lookup import find_job, quote, select_jids
from aioqless.cli.json_input import read_data, validate_json
from aioqless.cli.options import (
    Count,
    DryRun,
    FailedGroup,
    Filtered,
    InSet,
    Jid,
    Jids,
    Json,
    Offset,
    QueueName,
    Yes,
)
from aioqless.cli.presentation.formatting import pluralize
from aioqless.cli.presentation.printing import print_json, print_text
from aioqless.cli.presentation.prompts import confirm, show_progress
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.validation import plain

BATCH, PAGE = 200, 1000  # jobs


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless cancel 4f2a…; aioqless cancel --group mail-SMTPError --dry-run",
)
def cancel(
    jid: Jids = None,
    group: FailedGroup = None,
    chosen: Filtered = None,
    in_set: InSet = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Act:
    """Delete jobs by jid, failure group, filter or job set. Complete jobs stay."""
    if sum((bool(jid), *(each is not None for each in (group, chosen, in_set)))) != 1:
        raise typer.BadParameter("choose one: jids, --group, --filter or --set")
    if in_set is not None:
        return partial(_cancel_set, name=in_set, dry_run=dry_run, yes=yes)
    words = chosen if group is None else f"group:{quote(group)}"

    async def act(client: Client) -> None:
        if jid:
            jids = [(await find_job(client, each)).jid for each in jid]
        else:
            jids = await select_jids(client, words or "")
        if not jids:
            print_text("no such jobs")
            return
        deletable = await _leave_complete(client, jids)
        left = len(jids) - len(deletable)
        stay = f", {pluralize(left, 'complete job')} left" if left else ""
        if dry_run:
            held = await _count_held(client, deletable)
            kept = (
                f", {pluralize(held, 'job')} kept, since other jobs depend on them" if held else ""
            )
            print_text(f"{pluralize(len(deletable) - held, 'job')} would be deleted{kept}{stay}")
            return
        which = f"job {plain(deletable[0])}" if len(deletable) == 1 else f"{len(deletable):,} jobs"
        if deletable:
            confirm(f"Delete {which}?", yes=yes)
        deleted, held = await _cancel(client, deletable, all_or_none=bool(jid))
        print_text(f"{pluralize(deleted, 'job')} deleted{stay}")
        if held:
            raise AioqlessError(
                f"{pluralize(held, 'job')} kept, since other jobs depend on them: "
                "cancel those in the same command"
            )

    return act


async def _cancel_set(client: Client, *, name: str, dry_run: bool, yes: bool) -> None:
    """Close a job set, and delete its members that have not ended."""
    job_set = client.job_set(name)
    status = await job_set.status()
    members = pluralize(status.open + status.held, "job")
    if dry_run:
        print_text(f"{members} of the set {plain(name)} would be deleted")
        return
    confirm(f"Close the set {plain(name)}, and delete {members}?", yes=yes)
    print_text(f"{pluralize(await job_set.cancel(), 'job')} deleted")


async def _leave_complete(client: Client, jids: Sequence[str]) -> list[str]:
    """Return those of the jobs that aren't complete."""
    found: list[str] = []
    for first in range(0, len(jids), PAGE):
        page = jids[first : first + PAGE]
        states = await client.internals.store.states(jids=page)
        found += [
            jid for jid, state in zip(page, states, strict=True) if state and state != "complete"
        ]
    return found


async def _count_held(client: Client, jids: Sequence[str]) -> int:
    """Return how many of the jobs would stay, since others depend on them."""
    gone, dependents = set(jids), dict[str, Sequence[str]]()
    for first in range(0, len(jids), BATCH):
        for job in await client.jobs.multiget(*jids[first : first + BATCH]):
            dependents[job.jid] = job.dependents
    while held := {jid for jid in gone if not gone.issuperset(dependents.get(jid, ()))}:
        gone -= held
    return len(jids) - len(gone)


async def _cancel(client: Client, jids: Sequence[str], *, all_or_none: bool) -> tuple[int, int]:
    """Cancel jobs; return how many were deleted, and how many stay since others depend on them."""
    with show_progress("deleting", len(jids)) as advance:
        if all_or_none and len(jids) <= BATCH:  # the error names the dependent
            deleted = len(await client.jobs.cancel(*jids))
            advance(len(jids))
            return deleted, 0
        result = await client.jobs.cancel_many(jids, step=advance)
    return result.canceled, len(result.kept)


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless move 4f2a… urgent; aioqless move --filter tag:news slow --dry-run",
)
def move(
    jid: Jids = None,
    *,
    queue: QueueName,
    chosen: Filtered = None,
    delay: Annotated[float, typer.Option(help="Seconds until a job by jid may run.")] = 0,
    priority: Annotated[
        float | None,
        typer.Option(help="Of a job by jid: lower runs sooner; default: unchanged."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Act:
    """Move jobs to another queue, to run there.

    By jid: in any state; a running job is taken from its worker, after confirmation. By filter:
    the waiting and scheduled jobs.
    """
    if bool(jid) == (chosen is not None):
        raise typer.BadParameter("choose one: jids or --filter")
    words = f"{chosen} state:waiting,scheduled -queue:{quote(queue)}"

    async def act(client: Client) -> None:
        if jid:
            for each in jid:
                await _move(client, each, queue, delay, priority, dry_run, yes)
        else:
            change = partial(client.jobs.move_many, queue=queue)
            await _change(client, None, words, change, f"moved to {plain(queue)}", dry_run=dry_run)

    return act


async def _move(
    client: Client,
    jid: str,
    queue: str,
    delay: float,
    priority: float | None,
    dry_run: bool,
    yes: bool,
) -> None:
    job = await find_job(client, jid)
    if not dry_run and job.state == "running":
        confirm(
            f"{plain(job.jid)} is running on {plain(job.worker)}, which loses its lock. Move it?",
            yes=yes,
        )
    if not dry_run:
        await job.move(queue, delay=delay, priority=priority)
    done = "would be moved" if dry_run else "moved"
    print_text(f"{plain(job.jid)} {done} from {plain(job.queue or 'nowhere')} to {plain(queue)}")


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless priority 4f2a… --to -5; "
    "aioqless priority --filter tag:news --to 10 --dry-run",
)
def priority(
    jid: Jids = None,
    *,
    to: Annotated[float, typer.Option(help="The new priority: lower runs sooner.")],
    chosen: Filtered = None,
    dry_run: DryRun = False,
) -> Act:
    """Set the priority of jobs by jid, or of those of a filter that have not ended."""
    if bool(jid) == (chosen is not None):
        raise typer.BadParameter("choose one: jids or --filter")
    words = None if chosen is None else f"{chosen} -state:complete,failed"

    async def act(client: Client) -> None:
        change = partial(client.jobs.set_priority_many, priority=to)
        await _change(client, jid, words, change, f"changed to priority {to:g}", dry_run=dry_run)

    return act


async def _change(
    client: Client,
    jid: Sequence[str] | None,
    words: str | None,
    change: Callable[[Sequence[str]], Awaitable[int]],
    done: str,
    *,
    dry_run: bool,
) -> None:
    """Change jobs by jid, or those of a filter, and print how many."""
    if words is None:
        jids = [(await find_job(client, each)).jid for each in jid or ()]
    else:
        jids = await select_jids(client, words)
    if dry_run:
        print_text(f"{pluralize(len(jids), 'job')} would be {done}")
        return
    count = 0
    with show_progress("changing", len(jids)) as advance:
        for first in range(0, len(jids), BATCH):
            portion = jids[first : first + BATCH]
            count += await change(portion)
            advance(len(portion))
    print_text(f"{pluralize(count, 'job')} {done}")


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless signal 4f2a… approved true; aioqless signal 4f2a… paid @paid.json",
)
async def signal(
    client: Client,
    jid: Jid,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the signal.")],
    value: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its value: JSON, @FILE or - for stdin.")
    ] = "null",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a value that the job has not received.")
    ] = False,
) -> None:
    """Send a signal to a job, which waits for it now or later."""
    job = await find_job(client, jid)
    sent = msgspec.json.decode(validate_json(read_data(value)))
    await client.jobs.signal(job.jid, name, sent, replace=replace)
    print_text(f"signal {plain(name)} sent to {plain(job.jid)}")


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless tag; aioqless tag 4f2a… urgent; aioqless tag 4f2a… urgent --remove; "
    "aioqless tag --filter customer:4711 vip",
)
def tag(
    jid: Annotated[
        str | None, typer.Argument(metavar="[JID]", autocompletion=complete_failed_jid)
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="[TAG]...", autocompletion=complete_tag)
    ] = None,
    *,
    chosen: Filtered = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tags.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
    count: Count = 100,
    offset: Offset = 0,
) -> Act:
    """Tag a job and show its tags, or tag the jobs of a filter.

    Without a job: list the tags that two jobs or more have, the most frequent first.
    """
    if chosen is not None:
        names = [each for each in (jid, *(tags or ())) if each]
        if not names or json:
            raise typer.BadParameter("--filter takes tags, and has no JSON")
        words = f"{chosen} tag:{','.join(map(quote, names))}" if remove else chosen
        return partial(_tag_many, words=words, names=names, remove=remove, dry_run=dry_run)
    if dry_run:
        raise typer.BadParameter("--dry-run is for --filter")

    async def act(client: Client) -> None:
        if jid is None:
            found = await client.jobs.tags(offset=offset, count=count)
        else:
            job = await find_job(client, jid)
            if not tags:
                found = job.tags
            else:
                found = await (job.untag(*tags) if remove else job.tag(*tags))
        if json:
            print_json(found)
        else:
            print_text("\n".join(map(plain, found)) or "No tags.")

    return act


async def _tag_many(
    client: Client, *, words: str, names: Sequence[str], remove: bool, dry_run: bool
) -> None:
    change = client.jobs.untag_many if remove else client.jobs.tag_many
    done = "untagged" if remove else "tagged"
    await _change(client, None, words, lambda jids: change(jids, *names), done, dry_run=dry_run)
