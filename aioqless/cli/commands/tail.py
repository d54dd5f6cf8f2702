"""Follows events: tail."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.completion import complete_queue
from aioqless.cli.options import Json
from aioqless.cli.presentation.event_output import print_event
from aioqless.cli.presentation.printing import print_hint, print_json_line
from aioqless.cli.presentation.suggestions import describe_unknown_queue
from aioqless.client import Client
from aioqless.client.events import KINDS

Queues = Annotated[
    list[str] | None,
    typer.Option(
        "-q", "--queue", help="Only of this queue; repeatable.", autocompletion=complete_queue
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help=f"{', '.join(KINDS)}; repeatable.", autocompletion=lambda: list(KINDS)
    ),
]


@app.command(
    rich_help_panel=Section.INSPECT,
    epilog="Examples: aioqless tail -q mail; "
    "aioqless tail --kind failed --json | jq -c '[.jid, .group]'",
)
async def tail(
    client: Client,
    queue: Queues = None,
    jid: Annotated[list[str] | None, typer.Option(help="Only of this job; repeatable.")] = None,
    kind: Kinds = None,
    tracked: Annotated[bool, typer.Option("--tracked", help="Only of tracked jobs.")] = False,
    count: Annotated[int | None, typer.Option(help="End after this many events.", min=1)] = None,
    json: Json = False,
) -> None:
    """Print events of jobs until Ctrl-C.

    It continues after an outage of Redis, and says what it may have missed.
    """
    left = count
    for name in queue or ():
        if problem := await describe_unknown_queue(client, name):
            print(f"aioqless: {problem}", file=sys.stderr)  # it may be made soon
    async with client.events(queue=queue, jid=jid, kind=kind, tracked=tracked) as events:
        print_hint("Listening for events. Press Ctrl-C to stop.")
        async for event in events:
            print_json_line({"kind": event.kind, **vars(event)}) if json else print_event(event)
            if left is not None and (left := left - 1) <= 0:
                return
