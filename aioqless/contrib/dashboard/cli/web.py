"""The dashboard: web."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.cli.connect import run_with_client
from aioqless.cli.options import LogJson, LogLevel, Namespace, Port, TokensFile, TrustedProxies, Url
from aioqless.cli.partitions import check_one_partition
from aioqless.client import Client
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
        typer.Option(
            help="Address to listen on; other than the loopback needs --tokens or --proxy-header."
        ),
    ] = "127.0.0.1",
    port: Port = 8787,
    socket: Annotated[
        Path | None, typer.Option(help="Unix socket to listen on, instead of an address.")
    ] = None,
    tokens: TokensFile = None,
    proxy_header: Annotated[
        str | None,
        typer.Option(
            envvar="AIOQLESS_WEB_PROXY_HEADER",
            help="Header in which a reverse proxy names the user it has authenticated; it counts "
            "only from --trusted-proxies, or on a --socket.",
        ),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ROLE",
            help="Role of a user that a proxy names: read, operate or admin; *=ROLE for all "
            "others. Default: *=read.",
        ),
    ] = None,
    trusted_proxies: TrustedProxies = "",
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
    """Serve the dashboard until SIGTERM or SIGINT. Without tokens, open the link that it prints."""
    from aioqless.contrib.dashboard.web_server import choose_identify, serve_dashboard
    from aioqless.contrib.http.proxy_header import parse_peers
    from aioqless.contrib.http.uvicorn_server import Address

    log.write_to(level=log_level, as_json=log_json)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    address = Address(host, port, socket)
    proxies = parse_peers(trusted_proxies)
    identify, startup_token = choose_identify(address, tokens, proxy_header, proxies, role or ())
    links = {name: link for name, _, link in (each.partition("=") for each in job_link or ())}

    async def act(client: Client) -> None:
        log.log.info("redis.used", **client.endpoint)
        await serve_dashboard(
            client,
            address,
            identify,
            startup_token,
            trusted_proxies=proxies,
            modules=modules or (),
            job_links=links,
        )

    check_one_partition(namespace)
    run_with_client(url, namespace, act)
