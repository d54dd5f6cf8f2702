"""A small HTTP server for health checks and metrics, whose clients can't exhaust the process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from aioqless.errors import AioqlessError
from aioqless.runtime.tasks import cancel_and_wait

LOOPBACK = "127.0.0.1"
MAX_CONNECTIONS = 10  # of each server: a worker may have as few as 64 descriptors
REQUEST_TIMEOUT = 5.0  # seconds for a client to send its request
CONNECTION_TIMEOUT = 20.0  # seconds until the client has read the response
MAX_REQUEST = 16 << 10  # bytes
ACCEPT_RETRY = 1.0  # seconds, when the process has no descriptors left


class Response(NamedTuple):
    """What a request is answered with."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain"


# Returns the response to a request with this header `Accept`.
Respond: TypeAlias = Callable[[str], Awaitable[Response]]


def parse_address(option: str, text: str) -> tuple[str, int]:
    """Return host and port of `8080`, `0.0.0.0:8080` or `[::1]:8080`; without a host, loopback.

    Raises:
        ValueError: if it is something else.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{option} {text!r} must be PORT or HOST:PORT")
    return host.strip("[]") or LOOPBACK, int(port)


@asynccontextmanager
async def serve_http(
    option: str, title: str, address: str, routes: Mapping[str, Respond]
) -> AsyncIterator[int]:
    """Serve HTTP while in the block, which gets the port.

    Args:
        option: the option of the command line that has the address.
        title: what is served, for errors.
        address: PORT or HOST:PORT.
        routes: who responds to which path; the method of a request doesn't matter.

    Raises:
        ValueError: if the address is malformed.
        AioqlessError: if the port is taken.
    """
    host, port = parse_address(option, address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise AioqlessError(
            f"{title} can't be served at {address}: {error.strerror or error}"
        ) from None
    with listening:
        listening.setblocking(False)
        server = _Server(listening, routes)
        accepting = asyncio.create_task(server.accept())
        try:
            yield listening.getsockname()[1]
        finally:
            await cancel_and_wait(accepting, *server.connections)


class _Server:
    """Owns the connections.

    When there are too many, the one is closed whose request has been incomplete for longest: idle
    clients keep no others out.

    Attributes:
        connections: whether the request of each is complete, the oldest first.
    """

    def __init__(self, listening: socket.socket, routes: Mapping[str, Respond]) -> None:
        self._listening = listening
        self._routes = routes
        self.connections: dict[asyncio.Task[None], bool] = {}

    async def accept(self) -> None:
        """Accept connections; not by asyncio's server, which accepts a hundred at once."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError:
                await asyncio.sleep(ACCEPT_RETRY)
                continue
            task = asyncio.create_task(self._answer(connection))
            self.connections[task] = False
            # a callback closes it, also if its task is canceled before it starts
            task.add_done_callback(partial(self._close, connection))
            if len(self.connections) > MAX_CONNECTIONS:
                oldest, _ = min(self.connections.items(), key=lambda each: each[1])
                await cancel_and_wait(oldest)

    def _close(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        del self.connections[task]
        connection.close()

    async def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(CONNECTION_TIMEOUT):
                request = b""
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    while b"\r\n\r\n" not in request:
                        part = await loop.sock_recv(connection, 4096)
                        if not part or len(request) > MAX_REQUEST:
                            return
                        request += part
                task = asyncio.current_task()
                assert task
                self.connections[task] = True
                await loop.sock_sendall(connection, await self._respond(request))

    async def _respond(self, request: bytes) -> bytes:
        first, *headers = request.decode("latin-1").split("\r\n")
        path = [*first.split(), "", ""][1].partition("?")[0]
        fields = {
            name.lower(): value for name, _, value in (each.partition(":") for each in headers)
        }
        if respond := self._routes.get(path):
            status, body, content_type = await respond(fields.get("accept", ""))
        else:
            status, body, content_type = HTTPStatus.NOT_FOUND, b"404 Not Found\n", "text/plain"
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body
