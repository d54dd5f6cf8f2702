"""Shows job sets: sets."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.options import Count, Json, Offset
from aioqless.cli.presentation.formatting import format_relative_time
from aioqless.cli.presentation.printing import (
    print_hint,
    print_json,
    print_json_line,
    print_table,
    print_text,
)
from aioqless.cli.presentation.prompts import show_progress
from aioqless.client import Client
from aioqless.client.job.state import JobSetStatus
from aioqless.validation import plain

PAGE = 100


@app.command(
    rich_help_panel=Section.INSPECT,
    epilog="Examples: aioqless sets; aioqless sets import-42 --follow",
)
def sets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the job set of this name.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show a progress bar until all members have ended.")
    ] = False,
    count: Count = 25,
    offset: Offset = 0,
    json: Json = False,
) -> Act:
    """List job sets, the latest first; or show one: its members by state, its failure groups."""
    if name is not None:
        return partial(_show_set, name=name, follow=follow, json=json)
    if follow:
        raise typer.BadParameter("--follow is for one set: name it")
    return partial(_list_sets, count=count, offset=offset, json=json)


async def _list_sets(client: Client, *, count: int, offset: int, json: bool) -> None:
    found: list[JobSetStatus] = []
    while len(found) < count:
        asked = min(PAGE, count - len(found))
        page = await client.job_sets(offset=offset + len(found), count=asked)
        found += page
        if len(page) < asked:
            break
    if json:
        print_json([_fields(each) for each in found])
        return
    print_table(
        ("name", "added", "open", "complete", "failed", "canceled", "ended", "closed", "changed"),
        [
            [
                *(each.name, each.added, each.open + each.held, each.complete, each.failed),
                *(each.canceled, f"{each.progress:.0%}", each.closed is not None),
                format_relative_time(each.changed),
            ]
            for each in found
        ],
        empty="No job sets: client.job_set(name).put makes one.",
    )


async def _show_set(client: Client, *, name: str, follow: bool, json: bool) -> None:
    job_set = client.job_set(name)
    status = await job_set.status()
    if follow:
        with show_progress(plain(name), max(1, status.added)) as advance:
            shown = 0
            async with aclosing(job_set.follow()) as readings:
                async for status in readings:
                    if json:
                        print_json_line(_fields(status))
                    advance(status.added - status.open - shown)
                    shown = status.added - status.open
    elif json:
        print_json(_fields(status))
    if not json:
        _print(status)


def _fields(status: JobSetStatus) -> dict[str, Any]:
    return {**asdict(status), "complete": status.complete, "progress": status.progress}


def _print(status: JobSetStatus) -> None:
    state = "ended" if status.has_ended else "open" if status.closed is None else "closed"
    print_text(f"{plain(status.name)}: {status.progress:.0%} of {status.added:,}, {state}")
    counts = ("open", "running", "held", "complete", "failed", "canceled")
    print_table(counts, [[getattr(status, each) for each in counts]], empty="")
    if status.groups:
        print_table(("group", "failed"), list(status.groups.items()), empty="")
        print_hint(f"aioqless retry --set {plain(status.name)}   retry the failed members")
