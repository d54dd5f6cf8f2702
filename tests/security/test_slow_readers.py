"""Clients that send requests and don't read the responses."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from aioqless.contrib.http.uvicorn_server import TimedProtocol, uvicorn_config
from tests.cli.test_http_server import LARGE, connected
from tests.conftest import Until


async def large(scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = bytes(LARGE) if scope["path"] == "/large" else b"small"
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def test_clients_that_do_not_read_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    monkeypatch.setattr(TimedProtocol, "MAX_CONNECTIONS", 3)
    config = uvicorn_config(large)
    config.port, config.lifespan = 0, "off"
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: asyncio.sleep(0, server.started))
    port = server.servers[0].sockets[0].getsockname()[1]

    async def all_wait() -> bool:
        return all(each.flow.write_paused for each in server.server_state.connections)

    async with AsyncExitStack() as stack:
        for count in range(1, 4):
            reader, writer = await stack.enter_async_context(connected(port))
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # of streams, too
            # more requests, which it may not take for a sign of life
            writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
            await until(lambda: asyncio.sleep(0, len(server.server_state.connections) == count))  # noqa: B023
        await until(all_wait)
        reader, writer = await stack.enter_async_context(connected(port))
        writer.write(b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read(1024)).startswith(b"HTTP/1.1 200 OK")
    server.should_exit = True
    await serving
