"""Jobs, to put and to look at: put, get, jobs."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from aioqless.cli.app import Count, Json, Namespace, Offset, QueueName, Url, app, run
from aioqless.cli.presentation.completion import failed_jids, group_names, queue_names, tag_names
from aioqless.cli.presentation.event_output import Wait, watched
from aioqless.cli.presentation.formatting import brief, plain
from aioqless.cli.presentation.job_detail import next_steps, portray
from aioqless.cli.presentation.json_input import checked, text_of
from aioqless.cli.presentation.json_output import found, listed, states_of, whole
from aioqless.cli.presentation.json_output import text_of as shown_text
from aioqless.cli.presentation.printing import hint, show, table
from aioqless.cli.presentation.suggestions import instead, unheard_of
from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.client.put import NewJob
from aioqless.errors import AioqlessError

STATES = ("running", "stalled", "waiting", "scheduled", "depends", "complete")
NONE = "No such jobs. Complete ones are listed by --state complete, failed ones by --group: `aioqless failed` shows the groups."
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="JSON; - reads what comes in, @FILE a file.")
]
State = Annotated[
    str | None, typer.Option(help=f"{', '.join(STATES)}.", autocompletion=lambda: list(STATES))
]
Group = Annotated[
    str | None,
    typer.Option("--group", help="Those that failed in this group.", autocompletion=group_names),
]
Tag = Annotated[
    str | None, typer.Option("--tag", help="Those with this tag.", autocompletion=tag_names)
]


@app.command(epilog='Example: aioqless put mail app.jobs.greet \'{"name": "Ada"}\' --delay 60')
def put(
    queue: QueueName,
    klass: Annotated[
        str, typer.Argument(metavar="KLASS", help="The handler's klass, such as app.jobs.greet.")
    ],
    data: Data = "null",
    jid: Annotated[
        str | None,
        typer.Option(help="Default: a new one. One that exists is moved here, with these data."),
    ] = None,
    delay: Annotated[float, typer.Option(help="Seconds.")] = 0,
    priority: Annotated[float | None, typer.Option(help="Lower runs sooner.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Repeatable.")] = None,
    retries: Annotated[int | None, typer.Option(help="How often it may be retried.")] = None,
    depends: Annotated[
        list[str] | None, typer.Option(help="A jid to wait for; repeatable.")
    ] = None,
    wait: Wait = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put a job; prints its jid."""
    sent = checked(text_of(data))

    async def act(client: Client) -> None:
        named = jid or (
            secrets.token_hex(16) if wait else None
        )  # who is to watch it must know it beforehand
        new = NewJob(
            klass,
            sent,
            jid=named,
            delay=delay,
            priority=priority,
            tags=tag,
            retries=retries,
            depends=depends,
        )
        async with watched(client, [named or ""], wait=wait):
            print(await client.queue(queue).put(new), flush=True)

    run(url, namespace, act)


@app.command(epilog="Example: aioqless get 4f2a… --json | jq .data")
def get(
    jid: Annotated[str, typer.Argument(metavar="JID", autocompletion=failed_jids)],
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show a job: where it is, what went wrong, its data, its history."""

    async def act(client: Client) -> None:
        job = await found(client, jid)
        if json:
            show(whole(job))
            return
        portray(job, await states_of(client, (job.dependencies + job.dependents)[:200]))
        if steps := next_steps(job):
            hint(f"\n{steps}")

    run(url, namespace, act)


@app.command(
    epilog="Examples: aioqless jobs mail --state running; aioqless jobs --tag welcome; aioqless jobs --state complete"
)
def jobs(
    queue: Annotated[
        str | None, typer.Argument(metavar="[QUEUE]", autocompletion=queue_names)
    ] = None,
    state: State = None,
    group: Group = None,
    tag: Tag = None,
    count: Count = 25,
    offset: Offset = 0,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """List jobs: of a queue or of all, in a state, of a failure group, with a tag."""
    if state is not None and state not in STATES:
        raise typer.BadParameter(
            f"{state!r} is none of {', '.join(STATES)}; failed ones are listed by --group",
            param_hint="--state",
        )
    if sum(each is not None for each in (queue or state, group, tag)) > 1:
        raise typer.BadParameter("a queue or state, --group and --tag can't be combined")

    async def act(client: Client) -> None:
        if group is not None:
            total, page = await client.jobs.failed_in(group, start=offset, limit=count)
            of: int | None = total
        elif tag is not None:
            of, jids = await client.jobs.tagged(tag, offset=offset, count=count)
            page = await client.jobs.multiget(*jids)
        else:
            of, page = (
                None,
                await client.jobs.multiget(*await _jids(client, queue, state, offset, count)),
            )
        unheard = await unheard_of(client, queue) if queue is not None and not page else ""
        if group is not None and not of:
            unheard = (
                f"nothing has failed in {plain(group)}{instead(group, await client.jobs.failed())}"
            )
        if json or not unheard:
            _list(page, json, of, offset)
        if unheard:
            raise AioqlessError(unheard)

    run(url, namespace, act)


async def _jids(
    client: Client, queue: str | None, state: str | None, offset: int, count: int
) -> list[str]:
    """Some jids, after so many that are passed over: those of each queue in the order of the
    states, queue by queue."""
    if state == "complete":
        if queue is not None:
            raise AioqlessError("a complete job is in no queue: leave it out")
        return await client.jobs.complete(offset=offset, count=count)
    names = [queue] if queue is not None else [counts.name for counts in await client.queues()]
    found: list[str] = []
    for name in names:
        counts = await client.queue(name).counts()
        for each in [state] if state else STATES[:-1]:
            if getattr(counts, each) > offset:
                found += await client.queue(name).jobs(
                    each, offset=offset, count=count - len(found)
                )
            offset = max(0, offset - getattr(counts, each))
            if len(found) >= count:
                return found
    return found


def _list(page: list[Job], json: bool, total: int | None, offset: int) -> None:
    if json:
        show([listed(job) for job in page])
        return
    columns = ["jid", "klass", "state", "queue", "data"]
    rows: list[tuple[object, ...]] = [
        (job.jid, job.klass, str(job.state), job.queue, brief(shown_text(job), 60)) for job in page
    ]
    if any(job.priority for job in page):
        columns.insert(4, "priority")
        rows = [(*row[:4], job.priority, row[4]) for row, job in zip(rows, page, strict=True)]
    table(columns, rows, empty=NONE)
    if total is not None and total > offset + len(page):
        hint(f"{offset + len(page):,} of {total:,}; --offset {offset + len(page)} goes on")
