"""Calls asynchronous clients from Spark's synchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

from aioqless.client import Client
from aioqless.contrib.lake.source.options import ClientSettings

Item = TypeVar("Item")


def new_runner() -> asyncio.Runner:
    """Return a runner with an event loop of its own, of uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def call(settings: ClientSettings, act: Callable[[Client], Awaitable[Item]]) -> Item:
    """Call a function with a client that is connected for the call, and return its result."""

    async def connect() -> Item:
        async with settings.client() as client:
            return await act(client)

    with new_runner() as loop:
        return loop.run(connect())


def iterate(
    settings: ClientSettings, items: Callable[[Client], AsyncIterator[Item]]
) -> Iterator[Item]:
    """Yield the items of an asynchronous iterator; its client is connected until the last one."""

    async def connect() -> AsyncGenerator[Item]:
        async with settings.client() as client:
            async for item in items(client):
                yield item

    with new_runner() as loop:
        source = connect()
        try:
            while True:
                try:
                    item = loop.run(_next(source))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            loop.run(source.aclose())


async def _next(source: AsyncIterator[Item]) -> Item:
    return await anext(source)
