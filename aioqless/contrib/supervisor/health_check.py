"""Whether a process is alive and ready, told over HTTP to whoever asks: Kubernetes, a load
balancer, curl."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aioqless.errors import AioqlessError
from aioqless.log import log

PATIENCE = 5.0  # seconds for somebody to say what they want


def address_of(text: str) -> tuple[str | None, int]:
    """Host and port of `8080`, `127.0.0.1:8080` or `[::1]:8080`; without a host, all. Raises
    ValueError."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"health {text!r} must be PORT or HOST:PORT")
    return host.strip("[]") or None, int(port)


@asynccontextmanager
async def told(
    address: str, live: Callable[[], bool], ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Answer `GET /live` and `GET /ready` while in the block: 200, or 503 when it isn't so.

    Raises ValueError, and AioqlessError for a port that is taken.
    """
    host, port = address_of(address)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PATIENCE):
                path = (await reader.readline()).split()[1:2]
                while (await reader.readline()).strip():
                    pass
                writer.write(
                    _answer({b"/live": live, b"/ready": ready}.get(path[0] if path else b""))
                )
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port)
    except OSError as error:
        raise AioqlessError(
            f"health can't be told at {address}: {error.strerror or error}"
        ) from None
    async with server:
        log.info("health.listening", port=server.sockets[0].getsockname()[1])
        yield


def _answer(holds: Callable[[], bool] | None) -> bytes:
    status = (
        b"404 Not Found" if holds is None else b"200 OK" if holds() else b"503 Service Unavailable"
    )
    body = status + b"\n"
    return (
        b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
        % (status, len(body), body)
    )
