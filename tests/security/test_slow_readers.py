"""Clients that send many requests, or don't read the responses."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from aioqless.contrib.http.uvicorn_server import TimedProtocol, uvicorn_config
from tests.cli.test_http_server import LARGE, REQUEST, connected
from tests.conftest import Until


async def respond(scope: Scope, _receive: Receive, send: Send) -> None:
    if scope["path"] == "/never":
        await asyncio.Event().wait()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = bytes(LARGE) if scope["path"] == "/large" else b"small"
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("paths", [(b"large", b"large"), (b"small", b"never")], ids=str)
async def test_clients_that_do_not_read_or_send_requests_ahead_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch, until: Until, paths: tuple[bytes, ...]
) -> None:
    monkeypatch.setattr(TimedProtocol, "MAX_CONNECTIONS", 3)
    config = uvicorn_config(respond)
    config.port, config.lifespan = 0, "off"
    config.timeout_graceful_shutdown = 0
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: asyncio.sleep(0, server.started))
    port = server.servers[0].sockets[0].getsockname()[1]

    async def are_stuck() -> bool:
        connections = server.server_state.connections
        return len(connections) == 3 and all(
            each.flow.write_paused or (each.scope and each.scope["path"] == "/never")
            for each in connections
        )

    async with AsyncExitStack() as stack:
        for _ in range(3):
            reader, writer = await stack.enter_async_context(connected(port))
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # of streams, too
            writer.write(b"".join(REQUEST % path for path in paths))
        await until(are_stuck)
        reader, writer = await stack.enter_async_context(connected(port))
        writer.write(REQUEST % b"small")
        assert (await reader.read(1024)).startswith(b"HTTP/1.1 200 OK")
    server.should_exit = True
    await serving
