"""Serves the dashboard as a process of its own, with uvicorn."""

from __future__ import annotations

import asyncio
import gc
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aioqless.cli.open_file_limit import open_file_limit
from aioqless.cli.signal_handlers import stop_on_signals
from aioqless.client import Client
from aioqless.contrib.dashboard import Access, User, create_app, passwords
from aioqless.contrib.dashboard.access import parse_role, read_users
from aioqless.contrib.http_sessions import is_loopback
from aioqless.errors import require_extra
from aioqless.runtime.log import log

with require_extra("web"):
    import uvicorn
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class WebServer:
    """Settings of the dashboard's process, validated before Redis is contacted."""

    host: str
    port: int
    access: Access
    secret: tuple[str, ...]

    @classmethod
    def from_settings(
        cls, host: str, port: int, users: Path | None, proxies: str, environment: Mapping[str, str]
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
        return cls(host, port, access, tuple(environment.get("AIOQLESS_WEB_SECRET", "").split()))

    async def run(self, client: Client) -> None:
        """Serve until a signal; raise OSError when the address is not available."""
        app = create_app(client, access=self.access, secret=self.secret or None)
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.create_server((self.host, self.port), family=family, backlog=512)
        host = f"[{self.host}]" if ":" in self.host else self.host
        url = f"http://{host}:{listening.getsockname()[1]}"
        log.info("web.started", url=url, users=len(self.access.users))
        if self.access.startup_token:
            # for the operator's terminal: others may read the log
            print(f"Open {url}/?token={self.access.startup_token}", flush=True)
        server = Server(uvicorn_config(app))
        stop_on_signals(server.stop)
        # what is loaded by now stays; a full collection of it would delay a page by 30 ms
        gc.freeze()
        await server.serve(sockets=[listening])


def uvicorn_config(app: ASGIApp) -> uvicorn.Config:
    """Return the configuration of uvicorn; `Access.trusted_proxies` replaces its own."""
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        # asyncio accepts this number at once, before the first may be closed
        backlog=max(TimedProtocol.MAX_CONNECTIONS // 4, 1),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        proxy_headers=False,
    )


class TimedProtocol(H11Protocol):
    """Closes connections that are above the limit, or whose next request takes too long.

    uvicorn waits for the rest of its headers forever.
    """

    REQUEST_TIMEOUT = 20.0  # seconds
    MAX_CONNECTIONS = min(250, (open_file_limit() or 1000) // 4)

    _deadline: asyncio.TimerHandle | None = None

    # uvicorn's own narrows the type of asyncio's method, too
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer; if there are too many, close the one that has waited longest."""
        super().connection_made(transport)
        self._set_deadline()
        if len(self.connections) > self.MAX_CONNECTIONS:
            deadlines = {
                each._deadline.when(): each  # noqa: SLF001  # of the same class
                for each in self.connections
                if isinstance(each, TimedProtocol) and each._deadline  # noqa: SLF001
            }
            deadlines[min(deadlines)].transport.abort()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when a request is complete."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Start the timer for the next request."""
        super().on_response_complete()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        if self._deadline:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        """Run the timer while the connection waits for data; parts do not extend it."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._deadline:
                self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.REQUEST_TIMEOUT, self.transport.close)


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the command line."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    def stop(self) -> None:
        """Shut down gracefully."""
        self.should_exit = True


def user_line(name: str, role: str, password: str) -> str:
    """Return a line for a file of users; raise ValueError."""
    user = User(name, parse_role(role), passwords.make_hash(password))
    return f"{user.name} {user.role.name.lower()} {user.password}"
