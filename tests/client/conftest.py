"""A client with a connection that fails."""

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
async def proxied_client(proxy: Proxy, namespace: str) -> AsyncIterator[Client]:
    """Return a client whose calls go through the proxy, in the namespace of `client`."""
    async with Client(proxy.url, namespace=namespace, timeout=2.1) as proxied_client:
        yield proxied_client
