"""A partitioned namespace on the server that the tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioqless import Job
from aioqless.contrib.partitions import PartitionedClient
from tests.worker.conftest import lines

__all__ = ["lines", "pop"]


@pytest.fixture
async def partitioned(redis_url: str, namespace: str) -> AsyncIterator[PartitionedClient]:
    async with PartitionedClient(redis_url, namespace=namespace, partitions=4) as client:
        yield client


async def pop(client: PartitionedClient, queue: str, count: int = 1) -> list[Job[Any]]:
    """Pop from one partition after the other until there are enough jobs."""
    popped: list[Job[Any]] = []
    for each in client.partitions:
        popped += await each.queue(queue).pop(count - len(popped)) if len(popped) < count else []
    return popped
