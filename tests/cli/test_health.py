"""Health checks of a worker over HTTP: `--health`."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.cli.conftest import Aioqless, Running, Start
from tests.conftest import Until


async def status_of(worker: Running, path: str) -> int:
    """Return the HTTP status of a path."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", worker.logged("health.listening")[0]["port"]
    )
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


@pytest.mark.parametrize("processes", [[], ["-w", "1"]])
async def test_worker_is_ready_while_it_pops_jobs(
    start: Start, until: Until, processes: list[str]
) -> None:
    async with start("--health", "127.0.0.1:0", *processes) as worker:

        async def ready() -> bool:
            return await status_of(worker, "/ready") == 200

        async def unready() -> bool:
            return await status_of(worker, "/ready") == 503

        await until(ready)
        assert await status_of(worker, "/live") == 200 and await status_of(worker, "/else") == 404
        worker.process.send_signal(signal.SIGUSR2)
        await until(unready)
        assert await status_of(worker, "/live") == 200


async def test_worker_is_alive_but_not_ready_during_an_outage(start: Start) -> None:
    options = ("--health", "127.0.0.1:0", "--url", "redis://127.0.0.1:1")
    # one that finds a killed worker's file waits for Redis before it says that it has started
    async with start(*options, begun="worker.redis_lost") as worker:
        assert (await status_of(worker, "/live"), await status_of(worker, "/ready")) == (200, 503)


async def test_address_in_use_is_refused(aioqless: Aioqless) -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        ended = await aioqless("worker", "jobs", "--health", f"127.0.0.1:{port}")
    assert ended.code == 1 and f"health checks can't be served at 127.0.0.1:{port}" in ended.err
