"""PartitionListener: messages to a worker of several partitions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from redis import exceptions
from redis.asyncio import Redis

from aioqless.redis.cluster import slot_of
from aioqless.redis.pubsub import subscribe
from aioqless.runtime.log import log
from aioqless.store import ScriptStore
from aioqless.worker.listener import PAUSE, Listener


class ListeningSource(Protocol):
    """A partition that gets messages."""

    namespace: str
    redis: Redis
    listener: Listener
    store: ScriptStore


class PartitionListener:
    """Owns one subscription to each node, to the channels of the partitions that are on it.

    A subscription that breaks is made again on the nodes that have its partitions then.

    Args:
        sources: The partitions.
        place: Called with the indexes of partitions and the node that they are on.
    """

    def __init__(
        self,
        sources: Sequence[ListeningSource],
        place: Callable[[Collection[int], object], object],
    ) -> None:
        self._sources = sources
        self._place = place

    async def run(self) -> None:
        """Listen until canceled."""
        async with asyncio.TaskGroup() as tasks:
            await self._divide(tasks, range(len(self._sources)))

    async def _divide(self, tasks: asyncio.TaskGroup, indexes: Collection[int]) -> None:
        """Start a subscription on each node that has some of these partitions."""
        groups: dict[object, list[int]] = {}
        ranges = await self._slot_ranges()
        for index in indexes:
            groups.setdefault(self._node_of(index, ranges), []).append(index)
        for node, group in groups.items():
            self._place(group, node)
            tasks.create_task(self._listen(tasks, group))

    async def _listen(self, tasks: asyncio.TaskGroup, indexes: list[int]) -> None:
        listeners = {
            channel: self._sources[index].listener
            for index in indexes
            for channel in self._sources[index].listener.channels
        }
        try:
            async with subscribe(self._sources[indexes[0]].redis, *listeners) as messages:
                for index in indexes:
                    listener = self._sources[index].listener
                    listener.catch_up(listener.channels)
                async for channel, payload in messages:
                    await listeners[channel].handle(channel, payload)
        except exceptions.RedisError as error:
            log.debug("listener.failed", error=str(error))
            await asyncio.sleep(PAUSE)
        await self._divide(tasks, indexes)

    async def _slot_ranges(self) -> list[tuple[int, int, str]]:
        """Return which node has which slots, as any node knows it; nothing without a Cluster."""
        for source in self._sources:
            with contextlib.suppress(exceptions.RedisError):
                reply = await source.store.connection.execute("CLUSTER", "SLOTS")
                return [(first, last, str(node[:2])) for first, last, node, *_ in reply]
        return []

    def _node_of(self, index: int, ranges: list[tuple[int, int, str]]) -> str:
        if not ranges:
            return ""
        slot = slot_of(self._sources[index].namespace)
        return next((node for first, last, node in ranges if first <= slot <= last), "")
