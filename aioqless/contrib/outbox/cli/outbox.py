"""Puts the jobs of a transactional outbox: outbox."""

from __future__ import annotations

from typing import Annotated

import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.options import LogJson, LogLevel, Poll
from aioqless.cli.signal_handlers import stop_on_signals
from aioqless.client import Client
from aioqless.errors import AioqlessError, require_extra
from aioqless.runtime import log


@app.command(rich_help_panel=Section.RUN)
def outbox(
    database: Annotated[
        str,
        typer.Argument(
            help="SQLAlchemy's URL with an async driver, such as postgresql+asyncpg://…"
        ),
    ],
    table: Annotated[str, typer.Option(help="The table of the outbox.")] = "aioqless_outbox",
    poll: Poll = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Put what is there, and end.")] = False,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
) -> Act:
    """Put the jobs that database transactions left in an outbox, until SIGTERM or SIGINT."""
    log.write_to(level=log_level, as_json=log_json)
    with require_extra("sqlalchemy"):
        from sqlalchemy.exc import SQLAlchemyError
        from sqlalchemy.ext.asyncio import create_async_engine

        from aioqless.contrib.outbox import Outbox, Relay
    try:
        engine = create_async_engine(database)
    except (SQLAlchemyError, ImportError) as error:
        raise AioqlessError(f"this database can't be used: {error}") from None

    async def act(client: Client) -> None:
        relay = Relay(Outbox(table=table), engine, client, poll=poll)
        try:
            if once:
                await relay.once()
                return
            stop_on_signals(relay.stop)
            log.log.info(
                "outbox.started",
                database=engine.url.render_as_string(),
                table=table,
                **client.endpoint,
            )
            await relay.run()
        except SQLAlchemyError as error:
            raise AioqlessError(f"the database refused: {error}") from None
        finally:
            await engine.dispose()

    return act
