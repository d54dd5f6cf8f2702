"""The HTTP API as a process: api."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.connect import run_with_client
from aioqless.cli.options import LogJson, LogLevel, Namespace, Port, TokensFile, TrustedProxies, Url
from aioqless.cli.partitions import check_one_partition
from aioqless.cli.worker_command import import_module
from aioqless.client import Client
from aioqless.handlers import Handlers
from aioqless.runtime import log


@app.command(rich_help_panel=Section.RUN)
def api(
    modules: Annotated[
        list[str] | None, typer.Argument(metavar="MODULE", help="Modules of handlers.")
    ] = None,
    tokens: TokensFile = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8788,
    origin: Annotated[
        list[str] | None, typer.Option(help="Origin of web pages that may send requests.")
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option(metavar="QUEUE", help="Queue that people work on.")
    ] = None,
    trusted_proxies: TrustedProxies = "",
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Serve the HTTP API until SIGTERM or SIGINT."""
    from aioqless.contrib.http import Tokens, create_api
    from aioqless.contrib.http.proxy_header import parse_peers
    from aioqless.contrib.http.tokens_source import VARIABLE, find_tokens
    from aioqless.contrib.http.uvicorn_server import Address, serve
    from aioqless.contrib.http_api import job_router
    from aioqless.contrib.human_tasks import TaskQueue
    from aioqless.contrib.human_tasks.api import task_router

    log.write_to(level=log_level, as_json=log_json)
    proxies = parse_peers(trusted_proxies)
    found = find_tokens(tokens)
    if not found:
        raise ValueError(f"--tokens, or {VARIABLE}, must have a token: each request needs one")
    if not modules and not tasks:
        raise ValueError("name modules of handlers, or queues that people work on by --tasks")
    handlers = list(Handlers.collect(*map(import_module, modules))) if modules else []

    async def act(client: Client) -> None:
        application = create_api(
            *([job_router(client, handlers)] if handlers else ()),
            *([task_router({each: TaskQueue(client, each) for each in tasks})] if tasks else ()),
            identify=Tokens(found),
            secret=os.environ.get("AIOQLESS_WEB_SECRET", "").split() or None,
            trusted_proxies=proxies,
            origins=origin or (),
        )
        log.log.info("redis.used", **client.endpoint)
        address = Address(host, port)
        await serve(application, address, lambda url: log.log.info("http_api.started", url=url))

    check_one_partition(namespace)
    run_with_client(url, namespace, act)
