"""The HTTP API as a process: api."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.connect import run_with_client
from aioqless.cli.options import LogJson, LogLevel, Namespace, Port, Url
from aioqless.cli.partitions import check_one_partition
from aioqless.cli.worker_command import import_module
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.handlers import Handlers
from aioqless.runtime import log

VARIABLE = "AIOQLESS_API_TOKENS"


@app.command(rich_help_panel=Section.RUN)
def api(
    modules: Annotated[list[str], typer.Argument(metavar="MODULE...", help="Modules of handlers.")],
    tokens: Annotated[
        Path | None,
        typer.Option(help=f"A TOML file with a table for each token. Default: {VARIABLE}."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8788,
    origin: Annotated[
        list[str] | None, typer.Option(help="Origin of web pages that may send requests.")
    ] = None,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Serve the HTTP API until SIGTERM or SIGINT."""
    from aioqless.contrib.http.uvicorn_server import serve
    from aioqless.contrib.http_api import create_api
    from aioqless.contrib.http_api.tokens import read_tokens

    log.write_to(level=log_level, as_json=log_json)
    if tokens is not None:
        try:
            found = read_tokens(tokens.read_text("utf-8"), str(tokens))
        except OSError as error:
            raise AioqlessError(f"--tokens {tokens}: {error.strerror}") from None
    else:
        found = read_tokens(os.environ.get(VARIABLE, ""), f"--tokens, or {VARIABLE},")
    handlers = Handlers.collect(*map(import_module, modules))

    async def act(client: Client) -> None:
        application = create_api(client, list(handlers), tokens=found, origins=origin or ())
        log.log.info("redis.used", **client.endpoint)
        await serve(application, host, port, lambda url: log.log.info("http_api.started", url=url))

    check_one_partition(namespace)
    run_with_client(url, namespace, act)
