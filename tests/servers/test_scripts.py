"""Scripts of many namespaces on one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aioqless import Client
from tests.servers.processes import Server, server_program

LIMIT = 500  # scripts of EVAL that servers keep, from Redis 7.4 and Valkey 8 on


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, program=server_program())
    server.start()
    yield server
    server.kill()


async def test_script_is_forgotten_once_however_many_namespaces_share_a_server(
    server: Server,
) -> None:
    async with Client(f"redis://{server.address}") as client:
        await client.put("Greet")
        for first in range(0, 3 * LIMIT, LIMIT):
            for number in range(first, first + LIMIT):
                server.ask("EVAL", f"return {number}", 0)
            await client.put("Greet")
    calls = server.info("INFO", "commandstats")["cmdstat_eval"]
    assert calls.startswith(f"calls={3 * LIMIT + 2},")
