"""The dashboard and its users: web, web-user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.connect import run_with_client
from aioqless.cli.options import LogJson, LogLevel, Namespace, Port, Url
from aioqless.cli.partitions import check_one_partition
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.runtime import log


@app.command(rich_help_panel=Section.RUN)
def web(
    modules: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODULE", help="Modules with handlers of which users may put jobs."),
    ] = None,
    *,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; other than the loopback needs --users."),
    ] = "127.0.0.1",
    port: Port = 8787,
    users: Annotated[
        Path | None,
        typer.Option(
            help="A file with a line `name role hash` for each user; `aioqless web-user` "
            "makes one. Default: AIOQLESS_WEB_USERS."
        ),
    ] = None,
    trusted_proxies: Annotated[
        str,
        typer.Option(
            envvar="AIOQLESS_WEB_TRUSTED_PROXIES",
            help="Addresses or networks of reverse proxies whose X-Forwarded-For and "
            "X-Forwarded-Proto are trusted, separated by commas.",
        ),
    ] = "",
    job_link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=URL",
            help="A link on the pages of jobs with this argument; {value} stands for its value.",
        ),
    ] = None,
    log_level: LogLevel = "info",
    log_json: LogJson = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Serve the dashboard until SIGTERM or SIGINT. Without users, open the link that it prints."""
    from aioqless.contrib.dashboard.web_server import read_access, serve_dashboard

    log.write_to(level=log_level, as_json=log_json)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    access = read_access(host, users, trusted_proxies)
    links = {name: address for name, _, address in (each.partition("=") for each in job_link or ())}

    async def act(client: Client) -> None:
        log.log.info("redis.used", **client.endpoint)
        await serve_dashboard(client, host, port, access, modules=modules or (), job_links=links)

    check_one_partition(namespace)
    run_with_client(url, namespace, act)


@app.command(rich_help_panel=Section.RUN)
def web_user(
    name: str,
    role: Annotated[str, typer.Option(help="read, operate or admin.")] = "operate",
    password: Annotated[
        str | None, typer.Option(envvar="AIOQLESS_WEB_PASSWORD", help="Default: a prompt.")
    ] = None,
) -> None:
    """Print a line for the dashboard's file of users."""
    from aioqless.contrib.dashboard.web_server import user_line

    if not password:
        if not sys.stdin.isatty():
            raise AioqlessError(
                "there is no terminal to ask for the password: set AIOQLESS_WEB_PASSWORD"
            )
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    print(user_line(name, role, password))
