"""An empty server for each test, since a check reads all keys."""

import pytest
from redis.asyncio import Redis


@pytest.fixture
def namespace() -> str:
    """Return one namespace for all tests, so that the scripts are compiled once."""
    return "town"


@pytest.fixture(autouse=True)
async def _an_empty_server(redis: Redis) -> None:
    """Flush the server: a check also reads the keys of finished tests."""
    await redis.flushdb(asynchronous=True)
