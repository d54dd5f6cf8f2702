"""Serves the dashboard as a process of its own, with uvicorn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from aioqless.client import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.http import Identify, ProxyHeader, Role, Tokens, is_loopback
from aioqless.contrib.http.identity import parse_role
from aioqless.contrib.http.proxy_header import EVERYONE, UNIX
from aioqless.contrib.http.tokens import make_secret
from aioqless.contrib.http.tokens_source import find_tokens
from aioqless.contrib.http.uvicorn_server import Address, serve
from aioqless.runtime.log import log


def choose_identify(
    address: Address,
    tokens_file: Path | None,
    header: str | None,
    proxies: Sequence[str],
    roles: Sequence[str],
) -> tuple[Identify, str]:
    """Return who says who users are, and the token of the start-up link, if it is one.

    Args:
        address: Where the dashboard listens.
        tokens_file: The file of tokens; the environment may have tokens instead.
        header: The header in which proxies name users.
        proxies: Addresses of the proxies; with a Unix socket, `unix` stands for all of them.
        roles: Roles of the users that proxies name, as `name=role`.

    Raises:
        ValueError: Unreadable tokens, a wrong proxy or role, options that exclude each other, or
            an address other than loopback without tokens and header.
        AioqlessError: The file of tokens can't be read.
    """
    tokens = find_tokens(tokens_file)
    if roles and not header:
        raise ValueError("--role is for users of --proxy-header: tokens have roles of their own")
    if header:
        if tokens:
            raise ValueError("give tokens or --proxy-header, not both")
        pairs = [each.partition("=") for each in roles or [f"{EVERYONE}=read"]]
        known = {name: parse_role(role) for name, _, role in pairs}
        peers = [UNIX] if address.path else proxies
        return ProxyHeader(header=header, peers=peers, roles=known), ""
    if tokens:
        if all(each.role == Role.NONE for each in tokens):
            raise ValueError(
                "none of the tokens has a role in the dashboard: make one by `aioqless token NAME "
                "--role admin`"
            )
        return Tokens(tokens), ""
    if address.path or not is_loopback(address.host):
        raise ValueError(
            f"{address} lets others in: give the dashboard --tokens (`aioqless token NAME` makes "
            "one) or the --proxy-header of a proxy that authenticates users, or let it listen on "
            "127.0.0.1"
        )
    secret = os.environ.get("AIOQLESS_WEB_TOKEN") or make_secret()
    return Tokens.at_startup(secret), secret


async def serve_dashboard(
    client: Client,
    address: Address,
    identify: Identify,
    startup_token: str,
    *,
    trusted_proxies: Sequence[str],
    modules: Sequence[str],
    job_links: Mapping[str, str],
) -> None:
    """Serve until a signal; raise AioqlessError when the address is not available."""
    app = create_app(
        client,
        identify=identify,
        secret=os.environ.get("AIOQLESS_WEB_SECRET", "").split() or None,
        trusted_proxies=[*trusted_proxies, *([UNIX] if address.path else ())],
        job_links=job_links,
        handlers=modules,
        lake=os.environ.get("AIOQLESS_LAKE") or None,
    )

    def announce(url: str) -> None:
        log.info("web.started", url=url)
        if startup_token:
            # for the operator's terminal: others may read the log
            print(f"Open {url}/?token={startup_token}", flush=True)

    await serve(app, address, announce)
