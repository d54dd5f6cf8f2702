"""Subscriptions to published messages."""

from __future__ import annotations

import asyncio

from aioqless import Client
from aioqless.redis.pubsub import subscribe

ITERATIONS = 60  # iterations of the event loop in which it connects, sends HELLO and subscribes


async def _listen(client: Client) -> None:
    async with subscribe(client.redis, f"{client.namespace}:log") as messages:
        async for _ in messages:
            pass


async def test_cancellation_at_any_moment_of_subscribing_takes_effect(client: Client) -> None:
    for iterations in range(ITERATIONS):
        listening = asyncio.create_task(_listen(client))
        for _ in range(iterations):
            await asyncio.sleep(0)
        listening.cancel()
        await asyncio.wait([listening], timeout=30)
        assert listening.cancelled(), f"canceled after {iterations} iterations of the event loop"
        await client.redis.connection_pool.disconnect()  # so that the next one connects
