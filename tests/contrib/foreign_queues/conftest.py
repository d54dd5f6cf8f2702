"""A server for each test, since Sidekiq's keys have no namespace, and Sidekiq's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from aioqless import Client
from tests.server import OwnServer
from tests.worker.conftest import lines

__all__ = ["lines"]

Push: TypeAlias = Callable[[str], Awaitable[list[str]]]


@pytest.fixture
async def here(own_server: OwnServer) -> AsyncIterator[Client]:
    """Return our client on the test's own server."""
    async with Client(own_server.url) as client:
        yield client


@pytest.fixture
def push(sidekiq_program: str, own_server: OwnServer) -> Push:
    """Push the named jobs of push.rb; returns the printed jids."""

    async def push(what: str) -> list[str]:
        process = await asyncio.create_subprocess_exec(
            "ruby", str(Path(__file__).with_name("push.rb")), own_server.url, what,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        assert process.returncode == 0
        return out.decode().split()

    return push
