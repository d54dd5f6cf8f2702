"""A server for each test, since sidekiq's keys have no namespace, and a client of sidekiq's own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from aioqless import Client, Job
from tests.server import OwnServer
from tests.worker.conftest import lines

__all__ = ["lines"]

Push: TypeAlias = Callable[[str], Awaitable[list[str]]]


@pytest.fixture
async def here(own_server: OwnServer) -> AsyncIterator[Client]:
    """A client of ours on the test's own server."""
    async with Client(own_server.url) as client:
        yield client


@pytest.fixture
def push(own_server: OwnServer) -> Push:
    """`await push("some")`: what push.rb pushes under that name; returns what it printed, the
    jids."""
    if not shutil.which("ruby") or not shutil.which("sidekiq"):
        pytest.skip("needs ruby and its sidekiq")

    async def push(what: str) -> list[str]:
        process = await asyncio.create_subprocess_exec(
            "ruby", str(Path(__file__).with_name("push.rb")), own_server.url, what,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        assert process.returncode == 0
        return out.decode().split()

    return push


async def got(client: Client, jid: str) -> Job:
    """A job that must be there."""
    job = await client.jobs.get(jid)
    assert job
    return job
