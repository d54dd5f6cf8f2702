"""Puts and shows jobs: put, get, jobs."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.completion import complete_filter
from aioqless.cli.connect import Act
from aioqless.cli.job_lookup import (
    explain_unknown_name,
    explain_unsearched,
    find_job,
    read_job_states,
)
from aioqless.cli.json_input import read_data, validate_json
from aioqless.cli.options import Count, Data, Jid, Json, QueueName, Wait
from aioqless.cli.presentation.formatting import shorten
from aioqless.cli.presentation.job_detail import print_job, suggest_next_steps
from aioqless.cli.presentation.json_output import data_text, job_details, job_summary
from aioqless.cli.presentation.printing import print_hint, print_json, print_table, print_text
from aioqless.cli.presentation.prompts import show_progress
from aioqless.cli.watch import warn_if_left, watch_jobs
from aioqless.cli.worker_command import import_module
from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.client.job.summaries import SearchPage
from aioqless.client.put import NewJob
from aioqless.client.put_options import Missing
from aioqless.errors import AioqlessError
from aioqless.handlers import Handler, Handlers

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
    body = validate_json(read_data(data))
    handler: str | Handler = klass
    if module is not None:
        handler = Handlers.collect(import_module(module)).find(klass)

    async def act(client: Client) -> None:
        # to watch a job, its jid must be known before it is put
        own_jid = jid or (secrets.token_hex(16) if wait else None)
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
    if steps := suggest_next_steps(job):
        print_hint(f"\n{steps}")


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
            _print_jobs(await client.jobs.multiget(*jids), json, last)
        if problem:
            raise AioqlessError(problem)

    return act


def _print_jobs(page: list[Job], json: bool, search: SearchPage) -> None:
    if json:
        print_json([job_summary(job) for job in page])
        return
    columns = ["jid", "klass", "state", "queue", "data"]
    rows: list[tuple[object, ...]] = [
        (job.jid, job.klass, str(job.state), job.last_queue, shorten(data_text(job), 60))
        for job in page
    ]
    if any(job.priority for job in page):
        columns.insert(4, "priority")
        rows = [(*row[:4], job.priority, row[4]) for row, job in zip(rows, page, strict=True)]
    print_table(columns, rows, empty="No such jobs.")
    if search.unsearched:
        print_text(explain_unsearched(search.unsearched))
    if search.cursor:
        print_hint(
            f"{search.searched:,} of at least {search.total:,} jobs searched; "
            f"--cursor {search.cursor} continues"
        )
