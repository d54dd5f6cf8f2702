"""Faults of a connection while a call is in flight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aioqless import Client, NewJob
from tests.client.proxy import Proxy

Fault = Callable[[Proxy], None]


def drop(proxy: Proxy) -> None:
    """Lose the reply after the request got through; the connection ends."""
    proxy.drop = 1


def cut(proxy: Proxy) -> None:
    """End the connection before the request gets through."""
    proxy.cut = 1


def stall(proxy: Proxy) -> None:
    """Delay the reply beyond the timeout of the call."""
    proxy.delay, proxy.seconds = 1, 0.9


over_each_fault = pytest.mark.parametrize("fault", [drop, cut, stall])


async def load_scripts(client: Client) -> None:
    """Load the scripts into Redis, so that the fault affects the call itself."""
    queue = client.queue("warm")
    await queue.put("Warm", jid="warm")
    (load_scripts,) = await queue.pop()
    await load_scripts.retry()
    (load_scripts,) = await queue.pop()
    await load_scripts.release()
    (load_scripts,) = await queue.pop()
    await load_scripts.heartbeat()
    await load_scripts.complete()
    await queue.put_many([NewJob("Warm", jid="warm"), NewJob("Warm", jid="other")])
    (load_scripts,) = await queue.pop()
    await load_scripts.fail("x", group="typo")
    await queue.unfail("typo")
    await client.jobs.cancel("warm", "other")
