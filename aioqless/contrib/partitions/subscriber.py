"""PartitionedSubscriber: the events of all partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

from redis.asyncio import Redis
from typing_extensions import override

from aioqless.client import Client
from aioqless.contrib.partitions.node_subscriptions import NodeSubscriptions
from aioqless.redis import Gap, Subscriber
from aioqless.runtime.tasks import cancel_and_wait

MOST_UNREAD = 10_000  # messages; then Redis waits for the reader, and disconnects it if it is slow

Item: TypeAlias = tuple[str, bytes] | Gap


class PartitionedSubscriber(Subscriber):
    """Subscribes to the channels of all partitions. While a node is away, those of others continue.

    Args:
        redis: Client of redis-py, for the first partition.
        namespace: Namespace of the first partition.
        partitions: Returns the clients of the partitions, once the client is connected.
    """

    def __init__(
        self, redis: Redis, namespace: str, partitions: Callable[[], Sequence[Client]]
    ) -> None:
        super().__init__(redis, namespace)
        self._partitions = partitions

    @override
    @asynccontextmanager
    async def listen(self, *names: str) -> AsyncIterator[AsyncIterator[Item]]:
        """Subscribe while the block is entered.

        Args:
            names: Names of channels, without the namespace.

        Yields:
            An iterator of (name of the channel, payload). A `Gap` comes when the messages of a
            node arrive again.

        Raises:
            redis.exceptions.RedisError: No node can be reached.
        """
        inbox = Inbox(self._partitions(), names)
        task = asyncio.create_task(
            inbox.subscriptions.run(), name="aioqless partitioned subscriber"
        )
        try:
            await inbox.wait_until_subscribed()
            yield inbox.read()
        finally:
            await cancel_and_wait(task)


class Inbox:
    """The messages of all partitions in one queue."""

    def __init__(self, partitions: Sequence[Client], names: Sequence[str]) -> None:
        self.subscriptions = NodeSubscriptions(
            partitions,
            [[f"{each.namespace}:{name}" for name in names] for each in partitions],
            received=self._receive,
            subscribed=self._note_subscribed,
            failed=self._note_failed,
        )
        self._items: asyncio.Queue[Item] = asyncio.Queue(MOST_UNREAD)
        self._untried = set(range(len(partitions)))
        self._error: Exception | None = None  # of a node, as long as none could be reached
        self._tried = asyncio.Event()
        self._reached = False

    async def _note_subscribed(self, indexes: Collection[int], gap: Gap | None) -> None:
        self._reached = True
        self._note_tried(indexes)
        if gap is not None:
            await self._items.put(gap)

    def _note_failed(self, indexes: Collection[int], error: Exception) -> None:
        self._error = error
        self._note_tried(indexes)

    async def _receive(self, _: int, channel: str, payload: bytes) -> None:
        await self._items.put((channel.partition(":")[2], payload))  # no namespace has a colon

    def _note_tried(self, indexes: Collection[int]) -> None:
        self._untried.difference_update(indexes)
        if not self._untried:
            self._tried.set()

    async def wait_until_subscribed(self) -> None:
        """Wait until each node has answered or failed to.

        Raises:
            redis.exceptions.RedisError: None has answered.
        """
        await self._tried.wait()
        if self._error is not None and not self._reached:
            raise self._error

    async def read(self) -> AsyncIterator[Item]:
        """Yield what arrives."""
        while True:
            yield await self._items.get()
