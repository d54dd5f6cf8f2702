"""How the dashboard is served as a process of its own: where, to whom, by uvicorn."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aioqless.browsers import is_loopback
from aioqless.cli.signals import stop_when_told
from aioqless.client import Client
from aioqless.errors import require_extra
from aioqless.log import log
from aioqless.web import Access, User, create_app, passwords
from aioqless.web.access import read_users, role_of

with require_extra("web"):
    import uvicorn


@dataclass(frozen=True)
class Serving:
    """Everything that is known before Redis is asked for anything."""

    host: str
    port: int
    access: Access
    secret: str | None

    @classmethod
    def checked(cls, host: str, port: int, users: Path | None, environment: Mapping[str, str]) -> Self:
        """Raises ValueError for what can't be served: users that can't be read, or another address than loopback without users."""
        access = Access()
        if users is not None:
            try:
                access = Access.of_file(users)
            except OSError as error:
                raise ValueError(f"--users {users}: {error.strerror}") from None
        elif text := environment.get("AIOQLESS_WEB_USERS"):
            access = Access(users=read_users(text.splitlines(), "AIOQLESS_WEB_USERS"))
        if access.open and not is_loopback(host):
            raise ValueError(
                f"--host {host} lets others in: give the dashboard users by --users FILE (`aioqless web-user NAME` prints a line for it), "
                "or let it listen on 127.0.0.1"
            )
        return cls(host, port, access, environment.get("AIOQLESS_WEB_SECRET"))

    async def run(self, client: Client) -> None:
        """Serve until told to stop. Raises OSError when the address can't be had."""
        app = create_app(client, access=self.access, secret=self.secret)
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.create_server((self.host, self.port), family=family, backlog=512)
        host = f"[{self.host}]" if ":" in self.host else self.host
        log.info("web.started", url=f"http://{host}:{listening.getsockname()[1]}", users=len(self.access.users))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=2, proxy_headers=not self.access.open
        )
        server = Server(config)
        stop_when_told(server.stop)
        gc.freeze()  # what stays for good: to walk through it at each full collection would make some page 30 ms late
        await server.serve(sockets=[listening])


class Server(uvicorn.Server):
    """One that leaves signals to the command line."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """End open requests, then itself."""
        self.should_exit = True


def user_line(name: str, role: str, password: str) -> str:
    """A line for a file of users. Raises ValueError."""
    user = User(name, role_of(role), passwords.hashed(password))
    return f"{user.name} {user.role.name.lower()} {user.password}"
