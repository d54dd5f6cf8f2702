"""A call does a bounded amount of work, whatever the sizes; measured on an empty server."""

from collections.abc import AsyncIterator

import pytest

from tests.lua.bounds.many_jobs import Gauge
from tests.lua.story import Story


@pytest.fixture
def namespace() -> str:
    """Return one namespace for all tests, so that the scripts are compiled once."""
    return "bounds"


@pytest.fixture
async def gauge(story: Story, request: pytest.FixtureRequest) -> AsyncIterator[Gauge]:
    await story.redis.flushdb()
    gauge = Gauge(story)
    yield gauge
    took = sorted(gauge.took)
    print(
        f"\n{request.node.name}: {len(took)} calls, at most {gauge.most} commands; "
        f"{took[len(took) // 2]} µs, at most {took[-1]} µs"
    )
    await story.redis.flushdb(asynchronous=True)
