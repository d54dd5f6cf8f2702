"""Runs a command with a connected client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aioqless.client import Client

T = TypeVar("T")


def run_with_client(url: str | None, namespace: str, act: Callable[[Client], Awaitable[T]]) -> T:
    """Call `act` with a connected client, on an event loop of its own; return its result."""

    async def connected() -> T:
        async with Client(url, namespace=namespace) as client:
            return await act(client)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(connected())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return None
    return uvloop.new_event_loop
