"""`aioqless intake`: jobs of sidekiq's, exq's and resque's clients."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from aioqless import log
from aioqless.cli.app import LogJson, LogLevel, Namespace, Poll, Url, app, run
from aioqless.cli.signal_handlers import stop_when_told
from aioqless.client import Client
from aioqless.contrib.foreign_queues import ForeignQueues, Format
from aioqless.worker.importer import ImportLoop
from aioqless.worker.redis_checks import Outage


@app.command()
def intake(
    format: Annotated[str, typer.Option("--format", help="sidekiq, exq or resque.")],
    prefix: Annotated[
        str | None,
        typer.Option(help="What the keys there begin with; default: nothing, exq, resque."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("-q", "--queue", help="A queue there; repeatable; default: all."),
    ] = None,
    into: Annotated[str, typer.Option(help="What the queues' names here begin with.")] = "",
    poll: Poll = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, and end.")] = False,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Take over jobs that clients of another system push into the same Redis, until SIGTERM or
    SIGINT."""
    log.write_to(level=log_level, as_json=log_json)
    source = ForeignQueues(
        format=cast(Format, format), prefix=prefix, queues=tuple(queue or ()), into=into
    )

    async def act(client: Client) -> None:
        loop = ImportLoop(client, source, Outage(), poll)
        if once:
            await loop.run_once()
            return
        stop_when_told(loop.stop)
        log.log.info("intake.started", source=str(source), **client.where)
        await loop.run()

    run(url, namespace, act)
