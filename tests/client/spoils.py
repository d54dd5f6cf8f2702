"""What may happen to a line while a call is on its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aioqless import Client, NewJob
from tests.client.proxy import Proxy

Spoil = Callable[[Proxy], None]


def drop(proxy: Proxy) -> None:
    """The reply gets lost after the request got through, and the line ends."""
    proxy.drop = 1


def cut(proxy: Proxy) -> None:
    """The line ends before the request gets through."""
    proxy.cut = 1


def stall(proxy: Proxy) -> None:
    """The reply comes after the timeout of the call."""
    proxy.delay, proxy.seconds = 1, 0.5


spoils = pytest.mark.parametrize("spoil", [drop, cut, stall])


async def warm(client: Client) -> None:
    """Let Redis know the scripts, so that what is spoiled is the call itself."""
    queue = client.queue("warm")
    await queue.put("Warm", jid="warm")
    (warm,) = await queue.pop()
    await warm.retry()
    (warm,) = await queue.pop()
    await warm.release()
    (warm,) = await queue.pop()
    await warm.heartbeat()
    await warm.complete()
    await queue.put_many([NewJob("Warm", jid="warm"), NewJob("Warm", jid="other")])
    (warm,) = await queue.pop()
    await warm.fail("typo", "x")
    await queue.unfail("typo")
    await client.jobs.cancel("warm", "other")
