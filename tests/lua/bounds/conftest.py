"""No call does more than a fixed amount of work, whatever the sizes; a gauge counts, on an empty
server."""

from collections.abc import AsyncIterator

import pytest

from tests.lua.bounds.crowds import Gauge
from tests.lua.story import Story


@pytest.fixture
def namespace() -> str:
    """One for all, so that the scripts are made once."""
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
