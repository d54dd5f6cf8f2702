"""A partitioned namespace on the server that the tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioqless.contrib.partitions import PartitionedClient
from tests.worker.conftest import lines

__all__ = ["lines"]


@pytest.fixture
async def partitioned(redis_url: str, namespace: str) -> AsyncIterator[PartitionedClient]:
    async with PartitionedClient(redis_url, namespace=namespace, partitions=4) as client:
        yield client
