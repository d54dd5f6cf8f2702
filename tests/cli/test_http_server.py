"""The HTTP server of health checks and metrics, against clients that don't behave."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.cli import http_server
from aioqless.cli.http_server import MAX_CONNECTIONS, Response, serve_http
from tests.cli.conftest import Start
from tests.cli.test_health import status_of
from tests.cli.test_metrics import total
from tests.conftest import Until

LARGE = 32 << 20  # bytes: more than the buffers of both ends
REQUEST = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to a port of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def status_from(port: int, path: bytes) -> int:
    """Return the status of a response."""
    async with connected(port) as (reader, writer):
        writer.write(REQUEST % path)
        return int((await reader.read(1024)).split()[1])


async def read_to_end(reader: asyncio.StreamReader) -> int:
    """Return how many bytes come before the connection is closed."""
    count = 0
    with suppress(ConnectionResetError):
        while part := await reader.read(1 << 20):
            count += len(part)
    return count


def count_entries(folder: str) -> int:
    return len(list(Path(folder).iterdir()))


@asynccontextmanager
async def serving(answered: asyncio.Event | None = None) -> AsyncIterator[int]:
    """Serve a large response, a small one, and one that waits for an event."""

    async def large(_accept: str) -> Response:
        return Response(HTTPStatus.OK, bytes(LARGE))

    async def small(_accept: str) -> Response:
        return Response(HTTPStatus.OK, b"")

    async def late(_accept: str) -> Response:
        assert answered
        await answered.wait()
        return Response(HTTPStatus.OK, b"")

    routes = {"/large": large, "/small": small, "/late": late}
    async with serve_http("health", "health checks", "127.0.0.1:0", routes) as port:
        yield port


@pytest.mark.parametrize("sent", [b"", b"GET /small HTTP/1.1\r\nHost: x\r\n"])
async def test_connection_without_a_complete_request_is_closed_in_time(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 0.1)
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await reader.read() == b""
        assert await status_from(port, b"small") == 200


async def test_request_of_endless_headers_is_closed() -> None:
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(b"GET /small HTTP/1.1\r\n" + b"X: y\r\n" * http_server.MAX_REQUEST)
        assert await read_to_end(reader) == 0


async def test_connection_that_does_not_read_the_response_is_closed_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "CONNECTION_TIMEOUT", 0.1)
    async with serving() as port, connected(port) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # of streams, too
        writer.write(REQUEST % b"large")
        # the server has closed it when another one has been, that was opened later
        async with connected(port) as (later, _):
            assert await later.read() == b""
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await read_to_end(reader) < LARGE


async def test_idle_connections_make_room_and_requests_in_progress_do_not() -> None:
    answered = asyncio.Event()
    async with serving(answered) as port, AsyncExitStack() as stack:
        late, writer = await stack.enter_async_context(connected(port))
        writer.write(REQUEST % b"late")
        idle = [await stack.enter_async_context(connected(port)) for _ in range(MAX_CONNECTIONS)]
        assert await idle[0][0].read() == b""
        assert await status_from(port, b"small") == 200
        answered.set()
        assert (await late.read(1024)).startswith(b"HTTP/1.1 200 OK")


async def test_connections_beyond_the_limit_are_refused_while_all_others_are_answered() -> None:
    answered = asyncio.Event()
    async with serving(answered) as port, AsyncExitStack() as stack:
        pairs = [await stack.enter_async_context(connected(port)) for _ in range(MAX_CONNECTIONS)]
        for _, writer in pairs:
            writer.write(REQUEST % b"late")
        async with connected(port) as (reader, _):
            assert await read_to_end(reader) == 0
        answered.set()
        for reader, _ in pairs:
            assert (await reader.read(1024)).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
@pytest.mark.parametrize("processes", [[], ["-w", "1"]], ids=["worker", "supervisor"])
async def test_worker_with_few_descriptors_goes_on_beside_idle_connections(
    client: Client, start: Start, until: Until, processes: list[str]
) -> None:
    listeners = ("--health", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    async with start(*processes, *listeners) as worker, AsyncExitStack() as stack:

        async def ready() -> bool:
            return await status_of(worker, "/ready") == 200

        async def counted() -> bool:
            return await total(worker, "aioqless_runs_total", outcome="completed") == 1

        await until(ready)
        pid = worker.process.pid
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (68, 68))
        for name in ("health", "metrics"):
            port = worker.logged(f"{name}.listening")[0]["port"]
            for number in range(100):
                _, writer = await stack.enter_async_context(connected(port))
                writer.write(b"GET /live HTTP/1.1\r\n" if number % 2 else b"")
        await client.queue("mail").put("Slow")
        await until(counted)
        assert await ready()
        assert count_entries(f"/proc/{pid}/fd") < 64
        assert count_entries(f"/proc/{pid}/task") < 16
        assert not worker.logged("worker.redis_lost")
