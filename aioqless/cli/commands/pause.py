"""Pause and resume queues and workers."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_queue, complete_worker
from aioqless.cli.presentation.printing import print_text
from aioqless.cli.presentation.suggestions import await_command, describe_unknown_queue
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.validation import plain

QueueNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[QUEUE...]", help="Queues by name.", autocompletion=complete_queue),
]
WorkerName = Annotated[
    str | None,
    typer.Option(
        "--worker",
        metavar="NAME",
        help="A running worker instead; `aioqless workers` shows the names.",
        autocompletion=complete_worker,
    ),
]


@app.command(rich_help_panel=Section.QUEUES)
def pause(queue: QueueNames = None, worker: WorkerName = None) -> Act:
    """Pause queues, or a worker. Running jobs are not affected."""
    return _change(queue, worker, paused=True)


@app.command(rich_help_panel=Section.QUEUES)
def resume(queue: QueueNames = None, worker: WorkerName = None) -> Act:
    """Resume queues, or a worker."""
    return _change(queue, worker, paused=False)


def _change(queues: list[str] | None, worker: str | None, *, paused: bool) -> Act:
    if bool(queues) == (worker is not None):
        raise typer.BadParameter("name queues, or one worker with --worker")

    async def act(client: Client) -> None:
        if worker is not None:
            workers = client.workers
            command = workers.pause(worker) if paused else workers.resume(worker)
            await await_command(client, worker, command)
        found = [client.queue(name) for name in queues or ()]
        for each in found:  # before the first is changed
            problem = await describe_unknown_queue(client, each.name)
            if problem and not (await each.counts()).paused:
                raise AioqlessError(problem)
        await asyncio.gather(*((each.pause if paused else each.resume)() for each in found))
        for name in queues or [worker or ""]:
            print_text(f"{plain(name)} {'paused' if paused else 'resumed'}")

    return act
