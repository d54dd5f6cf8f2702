"""Requests whose end a proxy and the server may see at different places."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.http import create_api
from aioqless.contrib.http.uvicorn_server import uvicorn_config
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import task_router
from tests.contrib.dashboard.conftest import OPEN

SMUGGLED = b"GET /session HTTP/1.1\r\nHost: localhost\r\n\r\n"


def applications(client: Client) -> dict[str, Any]:
    return {
        "dashboard": create_app(client, identify=OPEN),
        "human tasks": create_api(task_router({"mail": TaskQueue(client, "mail")}), identify=OPEN),
    }


@pytest.mark.parametrize("name", ["dashboard", "human tasks"])
@pytest.mark.parametrize("path", ["/login", "/session", "/static/page.css", "/nowhere"])
async def test_request_with_two_lengths_is_refused_and_ends_the_connection(
    client: Client, name: str, path: str
) -> None:
    config = uvicorn_config(applications(client)[name])
    config.port = 0
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
        assert not serving.done()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        for headers in (
            ["Content-Length: 5", "Transfer-Encoding: chunked"],
            ["transfer-encoding: Chunked", "CONTENT-LENGTH: 5"],
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
            writer.write("\r\n".join(lines).encode() + b"0\r\n\r\n" + SMUGGLED)
            async with asyncio.timeout(60):
                answers = await reader.read()  # until the server closes the connection
            writer.close()
            assert answers.startswith(b"HTTP/1.1 400 ") and answers.count(b"HTTP/1.1") == 1
    finally:
        server.should_exit = True
        await serving
