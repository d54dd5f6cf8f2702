"""What happens, as it happens: tail."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from aioqless.cli.app import Json, Namespace, Url, app, run
from aioqless.cli.presentation.completion import queue_names
from aioqless.cli.presentation.event_output import tell
from aioqless.cli.presentation.printing import hint, show_line
from aioqless.client import Client
from aioqless.client.events import KINDS, AnyEvent

Queues = Annotated[
    list[str] | None,
    typer.Option("-q", "--queue", help="Of this queue; repeatable.", autocompletion=queue_names),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help=f"{', '.join(KINDS)}; repeatable.", autocompletion=lambda: list(KINDS)
    ),
]


@app.command(
    epilog="Examples: aioqless tail -q mail; aioqless tail --kind failed --json | jq -c '[.jid, .group]'"
)
def tail(
    queue: Queues = None,
    jid: Annotated[list[str] | None, typer.Option(help="Of this job; repeatable.")] = None,
    kind: Kinds = None,
    tracked: Annotated[bool, typer.Option("--tracked", help="Of tracked jobs only.")] = False,
    count: Annotated[int | None, typer.Option(help="End after so many.", min=1)] = None,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show what happens to jobs, until Ctrl-C. When Redis was away it goes on, and says what it may
    have missed."""

    async def act(client: Client) -> None:
        left = count
        async with client.events(queue=queue, jid=jid, kind=kind, tracked=tracked) as events:
            hint("Listening. Ctrl-C ends it.")
            async for event in events:
                show_line(shape(event)) if json else tell(event)
                if left is not None and (left := left - 1) <= 0:
                    return

    run(url, namespace, act)


def shape(event: AnyEvent) -> dict[str, Any]:
    """An event in `--json`."""
    return {"kind": event.kind, **vars(event)}
