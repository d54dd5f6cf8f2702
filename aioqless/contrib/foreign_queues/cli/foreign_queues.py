"""Imports jobs of Sidekiq, Exq and Resque clients: import."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.connect import run_with_client
from aioqless.cli.options import LogJson, LogLevel, Namespace, Poll, Url
from aioqless.cli.partitions import check_one_partition
from aioqless.cli.signal_handlers import stop_on_signals
from aioqless.client import Client
from aioqless.contrib.foreign_queues import ForeignQueues, Format, ImportLoop
from aioqless.runtime import log
from aioqless.worker.context import Outage


@app.command("import", rich_help_panel=Section.RUN)
def import_jobs(
    format: Annotated[str, typer.Option("--format", help="sidekiq, exq or resque.")],
    prefix: Annotated[
        str | None,
        typer.Option(help="Prefix of the other system's keys; default: none, exq, resque."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "-q", "--queue", help="A queue of the other system; repeatable; default: all."
        ),
    ] = None,
    into: Annotated[str, typer.Option(help="Prefix of the names of the queues to put into.")] = "",
    poll: Poll = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Import what is there, and end.")] = False,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Import jobs that clients of another system push into this Redis, until SIGTERM or SIGINT."""
    log.write_to(level=log_level, as_json=log_json)
    source = ForeignQueues(
        format=cast(Format, format), prefix=prefix, queues=tuple(queue or ()), into=into
    )

    async def act(client: Client) -> None:
        loop = ImportLoop(client, source, Outage(), poll)
        if once:
            await loop.run_once()
            return
        stop_on_signals(loop.stop)
        log.log.info("import.started", source=str(source), **client.endpoint)
        await loop.run()

    check_one_partition(namespace)
    run_with_client(url, namespace, act)
