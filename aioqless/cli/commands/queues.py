"""Queues: queues, clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, get_args

import msgspec
import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_queue
from aioqless.cli.options import Count, DryRun, Json, Offset, QueueName, Yes
from aioqless.cli.presentation.formatting import format_duration, pluralize
from aioqless.cli.presentation.printing import print_hint, print_json, print_table, print_text
from aioqless.cli.presentation.prompts import confirm, show_progress
from aioqless.cli.presentation.queue_gaps import print_gaps
from aioqless.cli.presentation.suggestions import describe_unknown_queue
from aioqless.client import Client, read_overview
from aioqless.client.breakdown import choose_state, read_shares, sample_jids
from aioqless.client.overview import MAX_QUEUES, read_coverage
from aioqless.client.queue import Queue
from aioqless.client.queue_clearing import QUEUED, ClearResult, ClearState
from aioqless.client.queue_statistics import Tenant
from aioqless.errors import AioqlessError
from aioqless.validation import plain

COLUMNS = ("name", "waiting", "running", "stalled", "scheduled", "depends", "recurring", "paused")
STATES = (*get_args(ClearState), "all")
State = Annotated[
    list[str] | None,
    typer.Option(
        help=f"{', '.join(STATES)}; repeatable. Default: all but failed.",
        autocompletion=lambda: list(STATES),
    ),
]


@app.command(rich_help_panel=Section.INSPECT)
async def queues(
    client: Client,
    queue: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUEUE]",
            help="Show this queue, and the tenants of its fair turns.",
            autocompletion=complete_queue,
        ),
    ] = None,
    shares: Annotated[
        bool,
        typer.Option("--shares", help="Show which klasses, tags and data most jobs of QUEUE have."),
    ] = False,
    count: Count = 1000,
    offset: Offset = 0,
    json: Json = False,
) -> None:
    """Show how many jobs each queue has in each state; or show one, with its tenants."""
    if shares:
        if queue is None:
            raise typer.BadParameter("--shares is of one queue: name it")
        await _print_shares(client, queue, json)
        return
    if queue is not None:
        await _print_queue(client, queue, count, offset, json)
        return
    overview = await read_overview(client, most=max(MAX_QUEUES, offset + count))
    found = overview.queues[offset : offset + count]
    coverage = overview.coverage
    if json:
        served = coverage.workers
        print_json(
            [{**msgspec.structs.asdict(each), "workers": served.get(each.name)} for each in found]
        )
        return
    print_table(
        (*COLUMNS, "workers"),
        [
            [
                *(getattr(counts, column) for column in COLUMNS),
                coverage.workers.get(counts.name, ""),
            ]
            for counts in found
        ],
        empty="No queues yet: the first put makes one.",
    )
    print_gaps(coverage)


async def _print_queue(client: Client, queue: str, count: int, offset: int, json: bool) -> None:
    counts = await client.queue(queue).counts()
    tenants = await client.queue(queue).tenants(offset=offset, count=count)
    if problem := await describe_unknown_queue(client, queue):
        raise AioqlessError(problem)
    if json:
        shown = [msgspec.structs.asdict(each) for each in tenants]
        print_json({**msgspec.structs.asdict(counts), "tenants": shown})
    else:
        print_table(COLUMNS, [[getattr(counts, column) for column in COLUMNS]], empty="")
        if tenants:
            _print_tenants(tenants)
        print_gaps(await read_coverage(client, counts))


async def _print_shares(client: Client, name: str, json: bool) -> None:
    """Print what most jobs of a queue have in common, of a sample in the first state with jobs."""
    queue = client.queue(name)
    if problem := await describe_unknown_queue(client, name):
        raise AioqlessError(problem)
    counts = await queue.counts()
    state = choose_state(counts)
    total = getattr(counts, state)
    found = await read_shares(client, await sample_jids(queue, state, total))
    kinds = {"klass": found.klasses, "tag": found.tags, "data": found.fields}
    if json:
        shown = {kind: dict(rows) for kind, rows in kinds.items()}
        print_json(
            {"queue": name, "state": state, "total": total, "sampled": found.sampled, **shown}
        )
        return
    print_table(
        ("share", "jobs", "", "value"),
        [
            (
                f"{count / found.sampled:.0%}",
                f"{'~' if found.sampled < total else ''}{round(count * total / found.sampled):,}",
                kind,
                value,
            )
            for kind, rows in kinds.items()
            for value, count in rows
        ],
        empty=f"No jobs wait, run or are scheduled in {plain(name)}.",
    )
    if found.sampled:
        print_hint(f"of {found.sampled:,} of {total:,} {state} jobs")


def _print_tenants(tenants: Sequence[Tenant]) -> None:
    print_text("")
    print_table(
        ("tenant", "priority", "waiting", "running", "lag"),
        [
            [each.key, f"{each.priority:g}", each.waiting, each.running, format_duration(each.lag)]
            for each in tenants
        ],
        empty="",
    )


@app.command(
    rich_help_panel=Section.QUEUES,
    epilog="Examples: aioqless clear mail --dry-run; aioqless clear mail --state failed; "
    "aioqless clear mail --state all --yes",
)
def clear(
    queue: QueueName,
    state: State = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> Act:
    """Delete the jobs of a queue, except running jobs and dependencies of other jobs."""
    states = _checked_states(state)

    async def act(client: Client) -> None:
        target = client.queue(queue)
        if dry_run or not yes:
            cleared = await _clear(target, states, dry_run=True)
            if not cleared.canceled + cleared.kept and (
                problem := await describe_unknown_queue(client, queue)
            ):
                raise AioqlessError(problem)
            if cleared.canceled and not dry_run:
                found = pluralize(cleared.canceled, "job")
                confirm(f"Delete {found} of {plain(queue)} ({', '.join(states)})?", yes=yes)
                cleared = await _clear(target, states, dry_run=False)
        else:
            cleared = await _clear(target, states, dry_run=False)
        _print_cleared(queue, cleared, dry_run=dry_run, json=json)

    return act


def _checked_states(names: list[str] | None) -> list[ClearState]:
    if unknown := [each for each in names or () if each not in STATES]:
        raise typer.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(STATES)}", param_hint="--state"
        )
    if not names:
        return list(QUEUED)
    return [each for each in get_args(ClearState) if each in names or "all" in names]


def _print_cleared(queue: str, cleared: ClearResult, *, dry_run: bool, json: bool) -> None:
    if json:
        print_json({"queue": queue, "dry_run": dry_run, **asdict(cleared)})
    else:
        deleted = "would be deleted" if dry_run else "deleted"
        print_text(f"{pluralize(cleared.canceled, 'job')} of {plain(queue)} {deleted}")
    if cleared.kept:
        jid, dependent = next(iter(cleared.kept_for.items()))
        kept = f"{pluralize(cleared.kept, 'job')} {'would stay' if dry_run else 'stayed'}"
        others = ", for one" if cleared.kept > 1 else ""
        raise AioqlessError(
            f"{kept}, since jobs that aren't deleted depend on them: "
            f"{plain(dependent)} on {plain(jid)}{others}"
        )


async def _clear(queue: Queue, states: list[ClearState], *, dry_run: bool) -> ClearResult:
    with show_progress("looking" if dry_run else "deleting", None) as advance:
        return await queue.clear(states, dry_run=dry_run, step=advance)
