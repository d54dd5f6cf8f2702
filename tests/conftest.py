"""A real server for all tests, and a namespace of its own for each."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis as SyncRedis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as NotConnected

from aioqless.embedded.program import find_program
from aioqless.scripts import Scripts

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a server that ends with the tests."""
    with tempfile.TemporaryDirectory(prefix="aioqless-") as folder:
        socket = Path(folder) / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder, "--enable-debug-command", "yes"]
        server = subprocess.Popen([str(find_program().path), *options], stdout=subprocess.DEVNULL)
        try:
            with SyncRedis(unix_socket_path=str(socket)) as redis:
                _wait_for(redis)
            yield f"unix://{socket}"
        finally:
            server.terminate()
            server.wait()


def _wait_for(redis: SyncRedis, patience: float = 10.0) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            redis.ping()
            return
        except NotConnected:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses, so nobody has to empty a server."""
    return f"t{next(_numbers)}"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as redis:
        yield redis


@pytest.fixture
async def scripts(redis: Redis, namespace: str) -> Scripts:
    """The state machine alone, with no client around it."""
    return Scripts(redis, namespace)
