"""Workers, in this process and in processes of their own; and after each test, whether all that is
in Redis makes sense."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless import Client, Job
from aioqless.testing import Clock
from tests.cli.conftest import environment, folder, start
from tests.worker.conftest import idle, lines, work

__all__ = ["environment", "folder", "idle", "lines", "start", "work"]


@pytest.fixture(autouse=True)
async def sound(client: Client) -> AsyncIterator[None]:
    """Whatever a test did, `check` finds nothing afterwards."""
    yield
    assert await client.check() == []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def timed(redis_url: str, namespace: str, clock: Clock) -> AsyncIterator[Client]:
    """A client of the test's namespace that goes by the test's clock."""
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        yield client


async def got(client: Client, jid: str) -> Job[Any]:
    """A job that must be there."""
    job = await client.jobs.get(jid)
    assert job
    return job


async def states(client: Client, *jids: str) -> list[str | None]:
    """The states of jobs; None for one that isn't there."""
    return [state or None for state in await client.store.states(jids=jids)]


async def lapse(redis: Redis, client: Client, queue: str = "mail") -> None:
    """Let every lock of a queue run out, without a grace period."""
    await client.config.set("grace-period", 0)
    key = f"{client.namespace}:q:{queue}-locks"
    for jid in await redis.zrange(key, 0, -1):
        await redis.zadd(key, {jid: 1})  # type: ignore[type-var]
