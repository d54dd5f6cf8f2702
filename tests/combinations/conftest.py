"""Workers in this process and in their own processes.

After each test, `check` must find no problem in Redis.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioqless import Client, JobRecord
from aioqless.testing import Clock
from tests.cli.conftest import environment, folder, start
from tests.worker.conftest import idle, lines, work

__all__ = ["environment", "folder", "idle", "lines", "start", "work"]


@pytest.fixture(autouse=True)
async def consistent(client: Client) -> AsyncIterator[None]:
    """Check after each test that `check` finds no problem."""
    yield
    assert await client.check() == []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def clock_client(redis_url: str, namespace: str, clock: Clock) -> AsyncIterator[Client]:
    """Return a client of the test's namespace that uses the test's clock."""
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        yield client


async def existing_job(client: Client, jid: str) -> JobRecord:
    """Return a job that must exist."""
    job = await client.jobs.get(jid)
    assert job
    return job


async def states(client: Client, *jids: str) -> list[str | None]:
    """Return the states of jobs; None for a missing job."""
    return [state or None for state in await client.internals.store.states(jids=jids)]
