"""Serves health checks over HTTP, for Kubernetes or a load balancer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aioqless.errors import AioqlessError
from aioqless.runtime.log import log

REQUEST_TIMEOUT = 5.0  # seconds for a client to send its request


def parse_address(option: str, text: str) -> tuple[str | None, int]:
    """Return host and port of `8080`, `127.0.0.1:8080` or `[::1]:8080`; without a host, all.

    Raises:
        ValueError: if it is something else.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{option} {text!r} must be PORT or HOST:PORT")
    return host.strip("[]") or None, int(port)


@asynccontextmanager
async def serve_health_checks(
    address: str, live: Callable[[], bool], ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Answer `GET /live` and `GET /ready` with 200 or 503 while in the block.

    Raises:
        ValueError: if the address is malformed.
        AioqlessError: if the port is taken.
    """
    host, port = parse_address("health", address)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(REQUEST_TIMEOUT):
                path = (await reader.readline()).split()[1:2]
                while (await reader.readline()).strip():
                    pass
                check = {b"/live": live, b"/ready": ready}.get(path[0] if path else b"")
                writer.write(_response(check))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port)
    except OSError as error:
        raise AioqlessError(
            f"health checks can't be served at {address}: {error.strerror or error}"
        ) from None
    async with server:
        log.info("health.listening", port=server.sockets[0].getsockname()[1])
        yield


def _response(check: Callable[[], bool] | None) -> bytes:
    if check is None:
        status = b"404 Not Found"
    else:
        status = b"200 OK" if check() else b"503 Service Unavailable"
    body = status + b"\n"
    return (
        b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (status, len(body), body)
    )
