"""A walk goes over all there is: so each test has a server of nothing else."""

import pytest
from redis.asyncio import Redis


@pytest.fixture
def namespace() -> str:
    """One for all, so that the scripts of some hundred tests are made once."""
    return "town"


@pytest.fixture(autouse=True)
async def _an_empty_server(redis: Redis) -> None:
    """Flush the server: a check reads all keys, those of finished tests too."""
    await redis.flushdb(asynchronous=True)
