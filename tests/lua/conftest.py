"""A story for each test."""

import pytest
from redis.asyncio import Redis

from aioqless.scripts import Scripts

from .story import Story


@pytest.fixture
def story(scripts: Scripts, redis: Redis) -> Story:
    return Story(scripts, redis)
