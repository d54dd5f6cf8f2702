"""Puts and shows jobs: put, get, jobs."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_filter
from aioqless.cli.job_lookup import (
    explain_unknown_name,
    explain_unsearched,
    find_job,
    find_root_causes,
    read_job_states,
)
from aioqless.cli.json_input import read_data, validate_json
from aioqless.cli.options import Count, Data, Jid, Json, QueueName, Wait
from aioqless.cli.presentation.formatting import format_duration, format_time, last_line, shorten
from aioqless.cli.presentation.job_detail import print_job, suggest_next_steps
from aioqless.cli.presentation.json_output import (
    data_text,
    job_details,
    job_summary,
    run_summary,
)
from aioqless.cli.presentation.printing import (
    make_console,
    print_hint,
    print_json,
    print_table,
    print_text,
)
from aioqless.cli.presentation.prompts import show_progress
from aioqless.cli.watch import warn_if_left, watch_jobs
from aioqless.cli.worker_command import import_module
from aioqless.client import Client
from aioqless.client.generated_jid import generate_jid
from aioqless.client.job import JobRecord
from aioqless.client.job.summaries import JobSummary, SearchPage
from aioqless.client.new_job import NewJob
from aioqless.client.put_options import Missing
from aioqless.errors import AioqlessError
from aioqless.handlers import Handler, Handlers
from aioqless.validation import plain

OPTIONAL = (4, 6, 7)  # columns of `jobs` that are left out where they are empty
MAX_ROOTS = 5  # jobs that hold up a workflow
MAX_RELATED = 200  # dependencies and dependents whose states are read


@app.command(
    rich_help_panel=Section.JOBS,
    epilog='Example: aioqless put mail app.jobs.greet \'{"name": "Ada"}\' --delay 60',
)
def put(
    queue: QueueName,
    klass: Annotated[
        str, typer.Argument(metavar="KLASS", help="The handler's klass, such as app.jobs.greet.")
    ],
    data: Data = "null",
    jid: Annotated[
        str | None,
        typer.Option(help="Default: a new one. An existing job is moved here, and gets this data."),
    ] = None,
    delay: Annotated[float, typer.Option(help="Seconds until it may run.")] = 0,
    priority: Annotated[float | None, typer.Option(help="Lower runs sooner.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Repeatable.")] = None,
    retries: Annotated[int | None, typer.Option(help="Maximum number of retries.")] = None,
    depends: Annotated[
        list[str] | None, typer.Option(help="A jid to wait for; repeatable.")
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(help="What a jid of --depends is that doesn't exist: refused, or done."),
    ] = None,
    module: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="The handler's module, such as app.jobs: its options, such as priority, tags and "
            "unique keys, apply, and the data is checked. Default: the handler isn't looked at.",
        ),
    ] = None,
    wait: Wait = False,
) -> Act:
    """Put a job; print its jid."""
    if klass.startswith(("{", "[")):
        raise typer.BadParameter("the data goes behind the klass: put QUEUE KLASS DATA")
    body = validate_json(read_data(data))
    handler: str | Handler = klass
    if module is not None:
        handler = Handlers.collect(import_module(module)).find(klass)

    async def act(client: Client) -> None:
        # to watch a job, its jid must be known before it is put
        own_jid = jid or (generate_jid() if wait else None)
        new = NewJob(
            handler,
            body,
            jid=own_jid,
            delay=delay,
            priority=priority,
            tags=tag,
            retries=retries,
            depends=depends,
            missing=missing,
        )
        async with watch_jobs(client, [own_jid or ""], wait=wait):
            put_jid = await client.queue(queue).put(new)
            print(put_jid, flush=True)
            await warn_if_left(client, put_jid)

    return act


@app.command(
    rich_help_panel=Section.INSPECT, epilog="Example: aioqless get 4f2a… --json | jq .data"
)
async def get(client: Client, jid: Jid, json: Json = False) -> None:
    """Show a job: state, failure, data, history."""
    job = await find_job(client, jid)
    if json:
        print_json(job_details(job))
        return
    related = (job.dependencies + job.dependents)[:MAX_RELATED]
    print_job(job, await read_job_states(client, related))
    if roots := await find_root_causes(client, job) if job.state == "depends" else []:
        _print_root_causes(roots)
    if steps := suggest_next_steps(job):
        print_hint(f"\n{steps}")


def _print_root_causes(roots: list[JobRecord]) -> None:
    """Print which jobs hold up a workflow: failed ones or, if there are none, unfinished ones."""
    failed = [each for each in roots if each.state == "failed"]
    shown = failed or roots
    kind = "failed jobs" if failed else "jobs that have not ended"
    print_text(f"\nIt is waiting for {kind}:")
    for each in shown[:MAX_ROOTS]:
        place = f" in {plain(each.queue)}" if each.queue else ""
        why = (
            f": {shorten(last_line(each.failure.traceback), 100)}"
            if failed and each.failure
            else ""
        )
        print_text(f"  {plain(each.jid)}  {plain(each.klass)}  {each.state}{place}{why}")
    if len(shown) > MAX_ROOTS:
        print_text(f"  … and {len(shown) - MAX_ROOTS} more", style="dim")
    print_hint(f"aioqless get {plain(shown[0].jid)}")


@app.command(
    rich_help_panel=Section.INSPECT,
    epilog="Examples: aioqless jobs state:failed klass:app.greet 'age:<1h'; "
    "aioqless jobs queue:mail -tag:vip items.0.sku:abc",
)
def jobs(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER]...", autocompletion=complete_filter),
    ] = None,
    count: Count = 25,
    cursor: Annotated[
        str, typer.Option(help="Continue an earlier search, which printed the cursor.")
    ] = "",
    json: Json = False,
) -> Act:
    """List jobs that match a filter.

    Its words are state, klass, jid, tag, group, queue, worker, age, since, until and run, each with
    a value behind a colon, or a path in the data (customer:4711). A word alone is a jid or a part
    of a klass; -word excludes.
    """
    wanted = " ".join(words or ())

    async def act(client: Client) -> None:
        first = await client.jobs.search(wanted, cursor=cursor, count=count)
        last, jids = first, list(first.jids)
        with show_progress(f"searching {first.total:,} jobs", first.total) as advance:
            advance(first.searched)
            while last.cursor and len(jids) < count:
                page = await client.jobs.search(wanted, cursor=last.cursor, count=count - len(jids))
                advance(page.searched - last.searched)
                last, jids = page, jids + page.jids
        problem = "" if jids else await explain_unknown_name(client, wanted)
        if json or not problem:
            found = await client.jobs.multiget(*jids)
            summaries = {each.jid: each for each in await client.jobs.summaries(*jids)}
            runs = [(job, summaries[job.jid]) for job in found if job.jid in summaries]
            _print_jobs(runs, json, last)
        if problem:
            raise AioqlessError(problem)

    return act


def _print_jobs(page: list[tuple[JobRecord, JobSummary]], json: bool, search: SearchPage) -> None:
    if json:
        print_json([job_summary(job) | run_summary(summary) for job, summary in page])
        return
    rows: list[list[object]] = []
    for job, summary in page:
        run = run_summary(summary)
        at, ran = cast(float, run["time"]), summary.ran
        rows.append(
            [
                *(job.jid, job.klass, str(job.state), job.last_queue, job.priority),
                *(format_time(at) if at else "-", run["last_worker"] or "-"),
                *("-" if ran is None else format_duration(ran), shorten(data_text(job), 60)),
            ]
        )
    columns = ["jid", "klass", "state", "queue", "priority", "time", "worker", "ran", "data"]
    shown = [number for number, _ in enumerate(columns) if _has_values(rows, number)]
    print_table(
        [columns[number] for number in shown],
        [[row[number] for number in shown] for row in rows],
        empty="No such jobs.",
    )
    if search.unsearched:
        print_text(explain_unsearched(search.unsearched))
    if search.cursor:
        more = f"{search.searched:,} of at least {search.total:,} jobs searched; "
        # on standard error: a program that reads the list must not take it for the whole
        make_console(errors=True).print(
            f"{more}--cursor {search.cursor} continues", style="dim", soft_wrap=True
        )


def _has_values(rows: list[list[object]], column: int) -> bool:
    """Return whether a column that many lists don't need has something to show."""
    return column not in OPTIONAL or any(row[column] not in (0, "-") for row in rows)
