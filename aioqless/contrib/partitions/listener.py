"""PartitionListener: messages to a worker of several partitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from typing_extensions import override

from aioqless.contrib.partitions.node_subscriptions import ListeningPartition, NodeSubscriptions
from aioqless.redis.pubsub import Gap
from aioqless.worker.listener import Listener


class ListeningSource(ListeningPartition, Protocol):
    """A partition of a worker."""

    listener: Listener


class PartitionListener(NodeSubscriptions):
    """Handles the messages to a worker of several partitions."""

    def __init__(self, sources: Sequence[ListeningSource]) -> None:
        super().__init__(sources, [source.listener.channels for source in sources])
        self._listeners = [source.listener for source in sources]

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
