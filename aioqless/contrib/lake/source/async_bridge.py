"""Runs asynchronous reads of Redis for Spark, which asks for rows one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

from aioqless.client import Client
from aioqless.contrib.lake.source.options import Where

Item = TypeVar("Item")


def runner() -> asyncio.Runner:
    """Runs a loop, in the thread that asks."""
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def asked(where: Where, act: Callable[[Client], Awaitable[Item]]) -> Item:
    """What an answer takes one connection for."""

    async def connected() -> Item:
        async with where.client() as client:
            return await act(client)

    with runner() as loop:
        return loop.run(connected())


def drawn(where: Where, items: Callable[[Client], AsyncIterator[Item]]) -> Iterator[Item]:
    """The items of an asynchronous iterator over one connection, which ends with them."""

    async def connected() -> AsyncIterator[Item]:
        async with where.client() as client:
            async for item in items(client):
                yield item

    with runner() as loop:
        source = connected()
        try:
            while True:
                try:
                    item = loop.run(_next(source))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            loop.run(_closed(source))


async def _next(source: AsyncIterator[Item]) -> Item:
    return await anext(source)


async def _closed(source: AsyncIterator[Item]) -> None:
    await source.aclose()  # type: ignore[attr-defined]
