"""The dashboard behind a reverse proxy, and incomplete requests."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.http.uvicorn_server import TimedProtocol, uvicorn_config
from tests.contrib.dashboard.conftest import OPEN, TOKEN
from tests.server import free_port


@contextmanager
def behind_nginx(nginx: str, site: str, folder: Path, more: str = "") -> Iterator[str]:
    """Start nginx with `proxy_pass` to a site and optional directives; yields its address."""
    port = free_port()
    temporary = " ".join(
        f"{each}_temp_path {folder}/{each};"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(f"""
        daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}}
        http {{ access_log off; {temporary}
            server {{ listen 127.0.0.1:{port}; location / {{
                proxy_pass {site.replace("localhost", "127.0.0.1")}; {more} }} }} }}
    """)
    process = subprocess.Popen(
        [nginx, "-c", f"{folder}/nginx.conf", "-e", "stderr"], stderr=subprocess.PIPE
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=60)


class Impatient(TimedProtocol):
    REQUEST_TIMEOUT = 0.3


HEAD = b"GET /login HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET", HEAD, HEAD + b"\r\n" + HEAD, HEAD + b"Content-Length: 9999\r\n\r\nx"],
    ids=["nothing", "line", "half", "second", "body"],
)
async def test_connection_with_an_incomplete_request_is_closed(client: Client, sent: bytes) -> None:
    async with serving(client) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        dripping = asyncio.create_task(_drip(writer))
        answer = b""
        async with asyncio.timeout(60):
            # Bytes that arrive after the server has closed cause a reset.
            with suppress(ConnectionResetError):
                while received := await reader.read(1024):
                    answer += received
        assert answer.startswith(b"HTTP/1.1 200") if sent.count(b"\r\n\r\n") else answer == b""
        dripping.cancel()
        writer.close()


async def _drip(writer: asyncio.StreamWriter) -> None:
    """Send one byte at a time of a header that never ends."""
    for _ in range(1000):
        await asyncio.sleep(0.05)
        writer.write(b"x")


async def test_stream_outlasts_the_request_timeout(client: Client) -> None:
    async with (
        serving(client) as port,
        httpx.AsyncClient(base_url=f"http://localhost:{port}", trust_env=False, timeout=60) as http,
    ):
        await http.get("/", params={"token": TOKEN})
        async with http.stream("GET", "/live", params={"at": "/queue?name=mail"}) as stream:
            lines = stream.aiter_lines()
            while not (await anext(lines)).startswith("data: "):
                pass
            await asyncio.sleep(2 * Impatient.REQUEST_TIMEOUT)
            await client.queue("mail").put("Greet", {}, jid="late")
            while "late" not in await anext(lines):
                pass


@asynccontextmanager
async def serving(client: Client) -> AsyncIterator[int]:
    """Serve the dashboard as the command line does, with shorter timeouts."""
    config = uvicorn_config(create_app(client, identify=OPEN))
    assert config.http is TimedProtocol
    config.http, config.host, config.port = Impatient, "127.0.0.1", 0
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve())  # noqa: SLF001  # without signal handlers
    while not server.started:
        await asyncio.sleep(0.005)
        assert not running.done(), running.exception()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running
