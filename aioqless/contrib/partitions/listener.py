"""PartitionListener: messages to the consumers of several partitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from typing_extensions import override

from aioqless.client import Client
from aioqless.contrib.partitions.node_subscriptions import NodeSubscriptions
from aioqless.redis.pubsub import Gap
from aioqless.worker.worker import Consumer


class PartitionListener(NodeSubscriptions):
    """Handles the messages to the consumers of several partitions."""

    def __init__(self, consumers: Sequence[Consumer], clients: Sequence[Client]) -> None:
        self._listeners = [consumer.listener for consumer in consumers]
        super().__init__(clients, [listener.channels for listener in self._listeners])

    @override
    async def subscribed(self, indexes: Collection[int], gap: Gap | None) -> None:
        """Make up for messages from before the subscription existed."""
        for index in indexes:
            self._listeners[index].catch_up(self._listeners[index].channels)

    @override
    async def failed(self, indexes: Collection[int], error: Exception) -> None:
        """Do nothing: workers look for jobs once in a while in any case."""

    @override
    async def received(self, index: int, channel: str, payload: bytes) -> None:
        """Do what a message asks for."""
        await self._listeners[index].handle(channel, payload)
