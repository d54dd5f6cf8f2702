"""A client over a line that breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioqless import Client
from tests.client.proxy import Proxy


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(redis_url) as proxy:
        yield proxy


@pytest.fixture
async def spoiled(proxy: Proxy, namespace: str) -> AsyncIterator[Client]:
    """A client whose calls go through the proxy, into the namespace of `client`."""
    async with Client(proxy.url, namespace=namespace, timeout=1.2) as spoiled:
        yield spoiled
