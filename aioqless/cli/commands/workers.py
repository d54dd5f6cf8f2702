"""Workers, and orders to them: workers, subscribe, unsubscribe, quiet, resume."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from aioqless.cli.app import Json, Namespace, Url, app, run
from aioqless.cli.presentation.completion import queue_names, worker_names
from aioqless.cli.presentation.formatting import ago, brief, plain
from aioqless.cli.presentation.json_output import listed, summarized, text_of
from aioqless.cli.presentation.printing import say, show, table
from aioqless.cli.presentation.suggestions import instead
from aioqless.client import Client
from aioqless.client.job.summaries import WorkerGlance
from aioqless.client.results import WorkerState
from aioqless.errors import AioqlessError, NoSuchWorker
from aioqless.worker import Subscription

HELP = "Its name; `aioqless workers` shows them."
Name = Annotated[str, typer.Argument(metavar="WORKER", help=HELP, autocompletion=worker_names)]
Maybe = Annotated[
    str | None,
    typer.Argument(metavar="[WORKER]", help="What this one does now.", autocompletion=worker_names),
]
MOST = 100  # jobs of a worker that are shown, and workers that are asked for at once
JOBS = 10  # of each worker, in the JSON list of all
A_CALL = 20  # maximum number of workers per call, and of jobs of each
MOST_KNOWN = (
    1000  # maximum number of workers listed; above it, a worker that isn't listed may exist
)


@app.command()
def workers(
    worker: Maybe = None, json: Json = False, url: Url = None, namespace: Namespace = "ql"
) -> None:
    """Show who works, and on what: how many jobs each holds, how many of their locks ran out; or
    the jobs of one."""

    async def act(client: Client) -> None:
        if worker is not None:
            await _one(client, worker, json)
            return
        names = [each.name for each in await client.workers.counts()]
        most, step = (JOBS, A_CALL) if json else (1, MOST)
        found = [
            each
            for first in range(0, len(names), step)
            for each in await client.workers.working(*names[first : first + step], most=most)
        ]
        if json:
            show([summarized(each) for each in found])
            return
        rows = [_row(each) for each in found]
        table(
            ["name", "jobs", "stalled", "heard of", "doing"],
            rows,
            empty="No worker was seen: aioqless worker app.jobs",
        )

    run(url, namespace, act)


def _row(worker: WorkerGlance) -> tuple[object, ...]:
    doing = ", ".join(f"{plain(job.klass)} in {plain(job.queue)}" for job in worker.doing)
    more = f" and {worker.jobs - 1:,} more" if doing and worker.jobs > 1 else ""
    return worker.name, worker.jobs, worker.stalled, ago(worker.seen), brief(doing, 60) + more


async def _one(client: Client, worker: str, json: bool) -> None:
    held = await client.workers.jobs(worker)
    jobs = await client.jobs.multiget(*(held.jobs + held.stalled)[:MOST])
    known = [each.name for each in await client.workers.counts()]
    if json:
        (glance,) = await client.workers.working(worker, most=0)
        show(
            {
                "name": worker,
                "jobs": held.jobs,
                "stalled": held.stalled,
                "seen": glance.seen or None,
                "doing": [listed(job) for job in jobs],
            }
        )
    if worker not in known and len(known) < MOST_KNOWN and not jobs:
        raise AioqlessError(f"no worker named {plain(worker)} was seen{instead(worker, known)}")
    if json:
        return
    stalled = set(held.stalled)
    rows = [
        (
            job.jid,
            job.klass,
            job.queue,
            "stalled" if job.jid in stalled else "running",
            ago(job.expires),
            brief(text_of(job), 60),
        )
        for job in jobs
    ]
    table(
        ["jid", "klass", "queue", "state", "lock expires", "data"],
        rows,
        empty=f"{plain(worker)} holds no job.",
    )


@app.command()
def subscribe(
    worker: Name,
    queue: Annotated[
        str,
        typer.Argument(
            help="As for `worker -q`: mail, reports=4, urgent,5, 'mail-*'.",
            autocompletion=queue_names,
        ),
    ],
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let a running worker serve a queue from now on, or under these terms."""
    asked = Subscription.read(queue)
    weight = None if asked.weight == 1 else asked.weight
    _order(
        worker,
        url,
        namespace,
        json,
        lambda client: client.workers.subscribe(
            worker, asked.queue, limit=asked.limit, weight=weight
        ),
    )


@app.command()
def unsubscribe(
    worker: Name,
    queue: Annotated[str, typer.Argument(autocompletion=queue_names)],
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let a running worker serve a queue no longer; what runs of it goes on."""
    _order(worker, url, namespace, json, lambda client: client.workers.unsubscribe(worker, queue))


@app.command()
def quiet(worker: Name, json: Json = False, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let a running worker begin nothing more until it is told to resume."""
    _order(worker, url, namespace, json, lambda client: client.workers.quiet(worker))


@app.command()
def resume(worker: Name, json: Json = False, url: Url = None, namespace: Namespace = "ql") -> None:
    """Let a worker that was told to be quiet go on."""
    _order(worker, url, namespace, json, lambda client: client.workers.resume(worker))


def _order(
    worker: str,
    url: str | None,
    namespace: str,
    json: bool,
    order: Callable[[Client], Awaitable[WorkerState]],
) -> None:
    """Give an order, and print what the worker does from then on."""

    async def act(client: Client) -> None:
        try:
            told = await order(client)
        except NoSuchWorker:
            known = [each.name for each in await client.workers.counts()]
            raise AioqlessError(
                f"no worker {plain(worker)} listens{instead(worker, known)}"
            ) from None
        if json:
            show({"queues": told.queues, "paused": told.paused})
        else:
            say(" ".join(map(plain, told.queues)) + (" (paused)" if told.paused else ""))

    run(url, namespace, act)
