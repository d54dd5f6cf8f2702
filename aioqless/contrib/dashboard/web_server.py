"""Serves the dashboard as a process of its own, with uvicorn."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aioqless.client import Client
from aioqless.contrib.dashboard import Access, User, create_app, passwords
from aioqless.contrib.dashboard.access import parse_role, read_users
from aioqless.contrib.http import is_loopback
from aioqless.contrib.http.uvicorn_server import serve
from aioqless.runtime.log import log


def read_access(host: str, users: Path | None, proxies: str) -> Access:
    """Return who may use a dashboard, as the command line and the environment say.

    Raises:
        ValueError: Unreadable users, an unknown proxy, or an address other than loopback without
            users.
    """
    if users is not None:
        try:
            access = Access.of_file(users)
        except OSError as error:
            raise ValueError(f"--users {users}: {error.strerror}") from None
    elif text := os.environ.get("AIOQLESS_WEB_USERS"):
        access = Access(users=read_users(text.splitlines(), "AIOQLESS_WEB_USERS"))
    elif not is_loopback(host):
        raise ValueError(
            f"--host {host} lets others in: give the dashboard users by --users FILE "
            "(`aioqless web-user NAME` prints a line for it), or let it listen on 127.0.0.1"
        )
    else:
        token = os.environ.get("AIOQLESS_WEB_TOKEN") or secrets.token_urlsafe(24)
        access = Access(startup_token=token)
    trusted = tuple(each.strip() for each in proxies.split(",") if each.strip())
    return replace(access, trusted_proxies=trusted)


async def serve_dashboard(
    client: Client,
    host: str,
    port: int,
    access: Access,
    *,
    modules: Sequence[str],
    job_links: Mapping[str, str],
) -> None:
    """Serve until a signal; raise AioqlessError when the address is not available."""
    app = create_app(
        client,
        access=access,
        secret=os.environ.get("AIOQLESS_WEB_SECRET", "").split() or None,
        job_links=job_links,
        handlers=modules,
        lake=os.environ.get("AIOQLESS_LAKE") or None,
    )

    def announce(url: str) -> None:
        log.info("web.started", url=url, users=len(access.users))
        if access.startup_token:
            # for the operator's terminal: others may read the log
            print(f"Open {url}/?token={access.startup_token}", flush=True)

    await serve(app, host, port, announce)


def user_line(name: str, role: str, password: str) -> str:
    """Return a line for a file of users; raise ValueError."""
    user = User(name, parse_role(role), passwords.make_hash(password))
    return f"{user.name} {user.role.name.lower()} {user.password}"
