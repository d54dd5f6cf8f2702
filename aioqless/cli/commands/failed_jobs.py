"""Failed jobs: failed, retry, edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_group, complete_queue
from aioqless.cli.job_lookup import find_job, select_jids
from aioqless.cli.json_input import edit_json, read_data, validate_json
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
    Wait,
    Yes,
)
from aioqless.cli.presentation.formatting import (
    format_relative_time,
    last_line,
    pluralize,
    shorten,
)
from aioqless.cli.presentation.json_output import data_text, job_summary
from aioqless.cli.presentation.printing import (
    make_console,
    print_hint,
    print_json,
    print_table,
    print_text,
)
from aioqless.cli.presentation.prompts import confirm, show_progress
from aioqless.cli.presentation.suggestions import describe_unknown_queue, suggest
from aioqless.cli.watch import watch_jobs
from aioqless.client import Client
from aioqless.client.failures import (
    DEPLOY_AGE,
    HOUR,
    MAX_GROUPS,
    Cause,
    find_causes,
    find_groups,
    note_cut,
    sort_causes,
)
from aioqless.client.job import JobRecord
from aioqless.errors import AioqlessError
from aioqless.validation import plain

Into = Annotated[
    str | None,
    typer.Option(
        "--queue",
        help="The queue to run them in; default: where each failed.",
        autocompletion=complete_queue,
    ),
]
MAX_NAMED = 3  # groups of an error
Limit = Annotated[
    int | None, typer.Option("--count", help="Maximum number of jobs, the oldest first.", min=1)
]


@app.command(rich_help_panel=Section.INSPECT, epilog="Example: aioqless failed mail-SMTPError")
async def failed(
    client: Client,
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="[GROUP]", help="Show the jobs of this group.", autocompletion=complete_group
        ),
    ] = None,
    count: Count = 25,
    offset: Offset = 0,
    json: Json = False,
) -> None:
    """Show what fails by error, rising first; or the failed jobs of a group."""
    if group is None:
        await _print_causes(client, json)
        return
    total, found = await client.jobs.failed_in(group, offset=offset, count=count)
    if json:
        print_json({"total": total, "jobs": [job_summary(job) for job in found]})
    if not total:
        raise await _make_unknown_group(client, group)
    if json:
        return
    for job in found:
        _print_failed_job(job)
    print_text(f"{len(found)} of {pluralize(total, 'job')}")
    if found:
        print_hint(
            f"aioqless get {plain(found[0].jid)}   show one of them\n"
            f"aioqless retry --group {plain(group)}   retry all of them"
        )


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless retry 4f2a… --wait; aioqless retry --group mail-SMTPError --dry-run",
)
def retry(
    jid: Jids = None,
    group: FailedGroup = None,
    chosen: Filtered = None,
    in_set: InSet = None,
    everything: Annotated[bool, typer.Option("--all", help="All failed jobs.")] = False,
    queue: Into = None,
    count: Limit = None,
    from_step: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Forget this step, and those stored after it."),
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    yes: Yes = False,
) -> Act:
    """Retry failed jobs by jid, group, filter, job set, or all."""
    if sum((bool(jid), everything, *(each is not None for each in (group, chosen, in_set)))) != 1:
        raise typer.BadParameter("choose one: jids, --group, --filter, --set or --all")
    of_any_queue = in_set is not None or chosen is not None
    if (queue and of_any_queue) or (count and in_set is not None):
        raise typer.BadParameter(
            "--set and --filter retry each job in its queue, and --set all of them"
        )
    if wait and not jid:
        raise typer.BadParameter("--wait is for jobs by jid")
    if from_step and (not jid or queue):
        raise typer.BadParameter("--from-step is for jobs by jid, in their queue")

    async def act(client: Client) -> None:
        if jid:
            # check all of them before the first is retried
            jobs = [_require_failed(await find_job(client, each)) for each in jid]
            async with watch_jobs(client, [job.jid for job in jobs], wait=wait and not dry_run):
                await _retry_jobs(client, jobs, queue, from_step, dry_run)
        elif group is not None:
            await _retry_group(client, group, queue, count, dry_run)
        elif in_set is not None:
            await _retry_set(client, in_set, dry_run)
        elif chosen is not None:
            await _retry_selected(client, f"{chosen} state:failed", count, dry_run)
        else:
            await _retry_all(client, queue, count, dry_run, yes)

    return act


@app.command(
    rich_help_panel=Section.JOBS,
    epilog="Examples: aioqless edit 4f2a…; "
    'aioqless edit 4f2a… --data \'{"to": "ada@example.org"}\' --wait',
    context_settings={"allow_extra_args": True},  # refused with a hint
)
def edit(
    context: typer.Context,
    jid: Jid,
    data: Annotated[
        str | None,
        typer.Option(help="JSON, - or @FILE; default: edit it in $VISUAL or $EDITOR."),
    ] = None,
    wait: Wait = False,
) -> Act:
    """Change the data of a failed job, and retry it."""
    if context.args:
        raise typer.BadParameter(f"the new data goes behind --data: --data {context.args[0]!r}")

    async def act(client: Client) -> None:
        job = _require_failed(await find_job(client, jid))
        text = edit_json(job.text, job.jid) if data is None else read_data(data)
        if text is None:
            raise AioqlessError(
                "the data is unchanged, so nothing was done; "
                "`aioqless retry` retries the job as it is"
            )
        new = validate_json(text)
        async with watch_jobs(client, [job.jid], wait=wait):
            await client.jobs.retry(job.jid, data=new, was=job)
            print_text(f"{plain(job.jid)} retried in {plain(job.queue)}, with the new data")
        if not wait:
            print_hint(f"aioqless tail --jid {plain(job.jid)}   watch it")

    return act


def _require_failed(job: JobRecord) -> JobRecord:
    if job.state != "failed":
        raise AioqlessError(f"job {job.jid!r} has not failed: it is {job.state}")
    return job


async def _retry_set(client: Client, name: str, dry_run: bool) -> None:
    job_set = client.job_set(name)
    if dry_run:
        failed = (await job_set.status()).failed
        print_text(f"{pluralize(failed, 'job')} of the set {plain(name)} would be retried")
    else:
        print_text(f"{pluralize(await job_set.retry_failed(), 'job')} retried")


async def _retry_jobs(
    client: Client,
    jobs: Sequence[JobRecord],
    queue: str | None,
    from_step: str | None,
    dry_run: bool,
) -> None:
    for job in jobs:
        if not dry_run and queue is None:
            await client.jobs.retry(job.jid, from_step=from_step)
        elif not dry_run and queue is not None:
            await job.move(queue)
        done = "would be retried" if dry_run else "retried"
        print_text(f"{plain(job.jid)} {done} in {plain(queue or job.queue)}")


async def _retry_group(
    client: Client, group: str, queue: str | None, count: int | None, dry_run: bool
) -> None:
    total, _ = await client.jobs.failed_in(group, count=0)
    limit = min(total, count or total)
    if not total:
        raise await _make_unknown_group(client, group)
    if dry_run:
        print_text(f"{pluralize(limit, 'job')} of {plain(group)} would be retried")
    else:
        with show_progress(f"retrying {plain(group)}", limit) as advance:
            done = await client.jobs.retry_group(group, limit, queue=queue, step=advance)
        print_text(f"{pluralize(done, 'job')} of {plain(group)} retried")


async def _retry_selected(client: Client, words: str, count: int | None, dry_run: bool) -> None:
    jids = (await select_jids(client, words))[:count]
    if dry_run:
        print_text(f"{pluralize(len(jids), 'job')} would be retried")
        return
    with show_progress("retrying", len(jids)) as advance:
        retried = await client.jobs.retry_many(jids, step=advance)
    print_text(f"{pluralize(retried, 'job')} retried")


async def _retry_all(
    client: Client, queue: str | None, count: int | None, dry_run: bool, yes: bool
) -> None:
    groups = await client.jobs.failed_counts()
    left = total = min(sum(groups.values()), count or sum(groups.values()))
    which = pluralize(total, "failed job")
    if dry_run or not total:
        print_text(f"{which} would be retried" if total else "Nothing has failed.")
        return
    confirm(f"Retry {which}?", yes=yes, deletes=False)
    with show_progress("retrying", total) as advance:
        for group in sorted(groups):
            limit = min(groups[group], left)
            left -= await client.jobs.retry_group(group, limit, queue=queue, step=advance)
    print_text(f"{pluralize(total - left, 'failed job')} retried")


async def _make_unknown_group(client: Client, group: str) -> AioqlessError:
    counts = await client.jobs.failed_counts()
    similar = suggest(group, counts)
    if groups := list(find_groups(counts, group))[:MAX_NAMED]:
        similar = f": it is the error of the groups {', '.join(map(plain, groups))}"
    elif not similar and not await describe_unknown_queue(client, group):
        similar = f": {plain(group)} is a queue"
    return AioqlessError(f"there are no failed jobs in {plain(group)}{similar}")


async def _print_causes(client: Client, json: bool) -> None:
    """Print what fails by error, rising first."""
    counts, now = await client.jobs.failed_counts(), await client.internals.store.now()
    causes = await find_causes(client, counts) if counts else []
    sort_causes(causes, now)
    note_cut(causes, counts)
    marks = await client.metrics.marks(DEPLOY_AGE) if causes else []
    deploy = next((mark for mark in marks if mark.deploy), None)
    deployed = (deploy.text, deploy.at) if deploy else None
    if json:
        print_json([_cause_fields(cause, now, deployed) for cause in causes])
        return
    since = [f"since {plain(deployed[0])}"] if deployed else []
    print_table(
        ["failed", "last hour", "hour before", *since, "error", "groups", "latest", "message"],
        [_cause_row(cause, now, deployed) for cause in causes],
        empty="Nothing has failed.",
    )
    if len(counts) > MAX_GROUPS:
        print_hint(f"{pluralize(len(counts) - MAX_GROUPS, 'smaller group')} left out")
    if causes:
        print_hint(f"\naioqless failed {plain(causes[0].latest.group)}   show its jobs")


def _cause_row(cause: Cause, now: float, deploy: tuple[str, float] | None) -> tuple[object, ...]:
    hour, before = cause.growth(now)
    exact = cause.is_exact_since(now - HOUR)
    more = "at least " if cause.is_cut else ""
    groups = [plain(group.group) for group, _ in cause.parts]
    others = f" and {len(groups) - MAX_NAMED} more" if len(groups) > MAX_NAMED else ""
    return (
        _estimate(cause.total, exact=not cause.is_estimate, more=more),
        _estimate(hour, exact=exact),
        _estimate(before, exact=exact and cause.is_exact_since(now - 2 * HOUR)),
        *(
            [_estimate(round(cause.since(deploy[1])), exact=cause.is_exact_since(deploy[1]))]
            if deploy
            else []
        ),
        plain(cause.error),
        ", ".join(groups[:MAX_NAMED]) + others,
        format_relative_time(cause.latest.failed, now),
        shorten(last_line(cause.latest.message), 100),
    )


def _estimate(count: int, *, exact: bool, more: str = "") -> int | str:
    return count if exact and not more else f"{more}{'' if exact else '~'}{count:,}"


def _cause_fields(cause: Cause, now: float, deploy: tuple[str, float] | None) -> dict[str, object]:
    hour, before = cause.growth(now)
    return {
        "error": cause.error,
        "failed": cause.total,
        "estimated": cause.is_estimate,
        "cut": cause.is_cut,
        "last_hour": hour,
        "hour_before": before,
        "deploy": deploy
        and {"version": deploy[0], "at": deploy[1], "since": round(cause.since(deploy[1]))},
        "groups": {group.group: group.total for group, _ in cause.parts},
        "queues": cause.queues,
        "klasses": cause.klasses,
        "latest": {
            "jid": cause.latest.jid,
            "when": cause.latest.failed,
            "message": cause.latest.message,
        },
    }


def _print_failed_job(job: JobRecord) -> None:
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
    text = job.failure.traceback if job.failure else ""
    lines = [line for line in text.splitlines() if line.strip(" ^~")]
    for line in lines[-3:]:
        make_console().print(Text(f"  {shorten(line, 200)}", style="red"))
