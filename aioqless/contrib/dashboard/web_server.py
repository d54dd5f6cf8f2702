"""Serves the dashboard as a process of its own, with uvicorn."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from aioqless.client import Client
from aioqless.contrib.dashboard import Access, User, create_app, passwords
from aioqless.contrib.dashboard.access import parse_role, read_users
from aioqless.contrib.http import is_loopback
from aioqless.contrib.http.uvicorn_server import serve
from aioqless.runtime.log import log


@dataclass(frozen=True)
class WebServer:
    """Settings of the dashboard's process, validated before Redis is contacted."""

    host: str
    port: int
    access: Access
    secret: tuple[str, ...]
    modules: tuple[str, ...] = ()
    lake: str | None = None
    job_links: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_settings(
        cls,
        host: str,
        port: int,
        users: Path | None,
        proxies: str,
        environment: Mapping[str, str],
        *,
        modules: tuple[str, ...] = (),
        job_links: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Read the settings of the command line and the environment.

        Raises:
            ValueError: Unreadable users, an unknown proxy, or an address other than loopback
                without users.
        """
        trusted: dict[str, Any] = {
            "trusted_proxies": tuple(each.strip() for each in proxies.split(",") if each.strip())
        }
        token = environment.get("AIOQLESS_WEB_TOKEN") or None
        if users is not None:
            try:
                access = Access(
                    users=read_users(users.read_text("utf-8").splitlines(), str(users)), **trusted
                )
            except OSError as error:
                raise ValueError(f"--users {users}: {error.strerror}") from None
        elif text := environment.get("AIOQLESS_WEB_USERS"):
            access = Access(users=read_users(text.splitlines(), "AIOQLESS_WEB_USERS"), **trusted)
        elif not is_loopback(host):
            raise ValueError(
                f"--host {host} lets others in: give the dashboard users by --users FILE "
                "(`aioqless web-user NAME` prints a line for it), or let it listen on 127.0.0.1"
            )
        else:
            access = Access(startup_token=token or secrets.token_urlsafe(24), **trusted)
        secret = tuple(environment.get("AIOQLESS_WEB_SECRET", "").split())
        lake = environment.get("AIOQLESS_LAKE") or None
        return cls(host, port, access, secret, modules, lake, job_links)

    async def run(self, client: Client) -> None:
        """Serve until a signal; raise OSError when the address is not available."""
        app = create_app(
            client,
            access=self.access,
            secret=self.secret or None,
            job_links=self.job_links,
            handlers=self.modules,
            lake=self.lake,
        )

        def announce(url: str) -> None:
            log.info("web.started", url=url, users=len(self.access.users))
            if self.access.startup_token:
                # for the operator's terminal: others may read the log
                print(f"Open {url}/?token={self.access.startup_token}", flush=True)

        await serve(app, self.host, self.port, announce)


def user_line(name: str, role: str, password: str) -> str:
    """Return a line for a file of users; raise ValueError."""
    user = User(name, parse_role(role), passwords.make_hash(password))
    return f"{user.name} {user.role.name.lower()} {user.password}"
