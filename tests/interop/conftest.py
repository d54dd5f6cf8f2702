"""One Redis for both clients, in the default namespace of live clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless import Client
from aioqless.testing import server
from tests.interop.peer import peer as peer_of

# Bugs of qless-py: its timeout leaves the job with the worker, a tag that is added again counts
# twice, and a job that leaves its failure group is subtracted from another queue's counter.
LEFT_BY_PEERS = {"held-not-running", "tag-count", "failed-count"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that fail because of bugs in qless-py."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
            )


@pytest.fixture(scope="session")
def live_url() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture
async def ours(live_url: str) -> AsyncIterator[Client]:
    """Return our client of an empty Redis."""
    async with Redis.from_url(live_url) as redis:
        await redis.flushall()
    async with Client(live_url) as client:
        yield client
        found = [each for each in await client.check(resolve=True) if not each.is_left_by_others]
        assert {each.problem for each in found} <= LEFT_BY_PEERS and await client.check() == []


@pytest.fixture
def peer(ours: Client, live_url: str) -> Iterator[Any]:
    """Return the qless-py client."""
    client = peer_of(live_url)
    yield client
    client.redis.close()
