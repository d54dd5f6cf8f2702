"""A scenario for each test."""

from collections.abc import AsyncIterator

import pytest
import redis as blocking
from redis.asyncio import Redis

from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore
from tests.lua.least_privilege import WANTED, LeastPrivilegeScripts, make_users
from tests.lua.story import Story


@pytest.fixture(scope="session")
def users(redis_url: str) -> None:
    """Create Redis users with minimal permissions, if the tests run with them."""
    if WANTED:
        with blocking.Redis.from_url(redis_url) as redis:
            make_users(redis)


@pytest.fixture
async def store(redis_url: str, namespace: str, users: None) -> AsyncIterator[ScriptStore]:
    if WANTED:
        least = LeastPrivilegeScripts(redis_url, namespace)
        yield least
        await least.aclose()
    else:
        connection = Connection(redis_url)
        yield ScriptStore(connection, namespace)
        await connection.aclose()


@pytest.fixture
async def story(store: ScriptStore, redis: Redis) -> Story:
    """Provide a story on an empty server."""
    await redis.flushdb(asynchronous=True)
    return Story(store, redis)
