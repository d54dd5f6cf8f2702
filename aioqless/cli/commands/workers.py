"""Workers: workers."""

from __future__ import annotations

import time
from typing import Annotated, TypeVar

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.completion import complete_worker
from aioqless.cli.options import Json
from aioqless.cli.presentation.formatting import (
    format_duration,
    format_relative_time,
    shorten,
)
from aioqless.cli.presentation.json_output import data_text, job_summary, worker_summary
from aioqless.cli.presentation.printing import print_json, print_table, print_text
from aioqless.cli.presentation.suggestions import suggest
from aioqless.client import Client
from aioqless.client.job.summaries import WorkerSummary
from aioqless.errors import AioqlessError
from aioqless.validation import plain

Facts = TypeVar("Facts")
OptionalWorker = Annotated[
    str | None,
    typer.Argument(
        metavar="[WORKER]", help="Show the jobs of this worker.", autocompletion=complete_worker
    ),
]
FACTS = ("slots", "memory", "up", "version")
UNKNOWN = ("-",) * len(FACTS)
MAX_JOBS = 100  # of one worker that are shown
MAX_JOBS_IN_LIST = 10  # of each worker, in the JSON list of all
WORKERS_PER_CALL = 100
WORKERS_PER_CALL_WITH_JOBS = 20
MAX_LISTED = 1000  # workers; with more, one that isn't listed may exist


@app.command(rich_help_panel=Section.INSPECT)
async def workers(client: Client, worker: OptionalWorker = None, json: Json = False) -> None:
    """List workers: their queues, how many jobs each holds, how many locks expired; or show one."""
    if worker is not None:
        await _print_worker(client, worker, json)
        return
    names = [each.name for each in await client.workers.counts()]
    most, step = (MAX_JOBS_IN_LIST, WORKERS_PER_CALL_WITH_JOBS) if json else (1, WORKERS_PER_CALL)
    found = [
        each
        for first in range(0, len(names), step)
        for each in await client.workers.working(*names[first : first + step], most=most)
    ]
    living = [each.name for each in found if each.alive is not False]
    facts = await client.metrics.workers(*living)
    if json:
        print_json([worker_summary(each, facts.get(each.name)) for each in found])
        return
    cells = {
        name: _fact_cells(each.busy, each.slots, each.memory, each.started, each.version)
        for name, each in facts.items()
    }
    print_table(
        ["name", "queues", "jobs", "stalled", *FACTS, "last seen", "doing"],
        [_row(each, cells.get(each.name, UNKNOWN)) for each in found],
        empty="No workers. Start one: aioqless worker app.jobs",
    )


def _row(worker: WorkerSummary, facts: tuple[str, ...]) -> tuple[object, ...]:
    doing = ", ".join(f"{plain(job.klass)} in {plain(job.queue)}" for job in worker.doing)
    more = f" and {worker.jobs - 1:,} more" if doing and worker.jobs > 1 else ""
    seen = format_relative_time(worker.seen) + (", died" if worker.alive is False else "")
    served = "-" if worker.queues is None else shorten(" ".join(map(plain, worker.queues)), 60)
    return worker.name, served, worker.jobs, worker.stalled, *facts, seen, shorten(doing, 60) + more


def _fact_cells(
    busy: int, slots: int, memory: int, started: float, version: str | None
) -> tuple[str, ...]:
    """Format what a worker uses, and for how long it has run which version."""
    age = format_duration(max(0.0, time.time() - started))
    return f"{busy}/{slots}", f"{memory >> 20:,} MiB", age, shorten(version or "-", 20)


async def _print_worker(client: Client, worker: str, json: bool) -> None:
    held = await client.workers.jobs(worker)
    jobs = await client.jobs.multiget(*(held.jobs + held.stalled)[:MAX_JOBS])
    known = [each.name for each in await client.workers.counts()]
    (glance,) = await client.workers.working(worker, most=0)
    facts = None
    if glance.alive is not False:
        facts = (await client.metrics.workers(worker)).get(worker)
    if json:
        doing = [job_summary(job) for job in jobs]
        print_json(
            {
                "name": worker,
                "alive": glance.alive,
                "queues": glance.queues,
                "jobs": held.jobs,
                "stalled": held.stalled,
                "seen": glance.seen or None,
                "facts": facts,
                "doing": doing,
            }
        )
    if worker not in known and len(known) < MAX_LISTED and not jobs:
        raise AioqlessError(f"there is no worker {plain(worker)}{suggest(worker, known)}")
    if json:
        return
    if facts:
        used = _fact_cells(facts.busy, facts.slots, facts.memory, facts.started, facts.version)
        shown = [f"{name} {cell}" for name, cell in zip(FACTS, used, strict=True)]
        where = f"{plain(facts.host)}, pid {facts.pid}, aioqless {plain(facts.aioqless)}"
        print_text(", ".join([where, *shown]))
    stalled = set(held.stalled)
    rows = [
        (
            job.jid,
            job.klass,
            job.queue,
            "stalled" if job.jid in stalled else "running",
            format_relative_time(job.expires),
            shorten(data_text(job), 60),
        )
        for job in jobs
    ]
    print_table(
        ["jid", "klass", "queue", "state", "lock expires", "data"],
        rows,
        empty=f"{plain(worker)} has no running jobs.",
    )
