"""NodeSubscriptions: one subscription to each node of a Cluster."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from redis import exceptions

from aioqless.client import Client
from aioqless.redis import Gap, slot_of, subscribe
from aioqless.runtime.log import log

PAUSE = 1.0  # seconds before a node is tried again


class NodeSubscriptions:
    """Owns one subscription to each node, to the channels of the partitions that are on it.

    A subscription that breaks is made again on the nodes that have its partitions then.

    Args:
        partitions: The clients of the partitions.
        channels: The channels of each.
        received: Handles a message: the index of the partition, the channel and the payload.
        subscribed: Notes that messages of these partitions arrive, and what is missing before.
        failed: Notes that no messages of these partitions arrive for now.
    """

    def __init__(
        self,
        partitions: Sequence[Client],
        channels: Sequence[Sequence[str]],
        *,
        received: Callable[[int, str, bytes], Awaitable[None]],
        subscribed: Callable[[Collection[int], Gap | None], Awaitable[None]],
        failed: Callable[[Collection[int], Exception], object] = lambda *_: None,
    ) -> None:
        self._partitions = partitions
        self._channels = channels
        self._received = received
        self._subscribed = subscribed
        self._failed = failed
        self._gaps: dict[int, Gap] = {}  # by partition, while it has no subscription

    async def run(self) -> None:
        """Listen until canceled."""
        async with asyncio.TaskGroup() as tasks:
            await self._divide(tasks, range(len(self._partitions)))

    async def _divide(self, tasks: asyncio.TaskGroup, indexes: Collection[int]) -> None:
        """Start a subscription on each node that has some of these partitions."""
        groups: dict[object, list[int]] = {}
        ranges = await self._slot_ranges()
        for index in indexes:
            groups.setdefault(self._node_of(index, ranges), []).append(index)
        for group in groups.values():
            tasks.create_task(self._listen(tasks, group))

    async def _listen(self, tasks: asyncio.TaskGroup, indexes: list[int]) -> None:
        owners = {channel: index for index in indexes for channel in self._channels[index]}
        redis, latest = self._partitions[indexes[0]].redis, time.time()
        try:
            async with subscribe(redis, *owners, report_silence=True) as messages:
                gaps = [self._gaps.pop(index) for index in indexes if index in self._gaps]
                await self._subscribed(indexes, min(gaps, default=None))
                async for channel, payload in messages:
                    latest = time.time()
                    if channel:
                        await self._received(owners[channel], channel, payload)
        except exceptions.RedisError as error:
            log.debug("listener.failed", error=str(error))
            for index in indexes:
                self._gaps.setdefault(index, Gap(latest, str(error)))
            self._failed(indexes, error)
            await asyncio.sleep(PAUSE)
        await self._divide(tasks, indexes)

    async def _slot_ranges(self) -> list[tuple[int, int, str]]:
        """Return which node has which slots, as any node knows it; nothing without a Cluster."""
        for partition in self._partitions:
            with contextlib.suppress(exceptions.RedisError):
                reply = await partition.internals.store.connection.execute("CLUSTER", "SLOTS")
                return [(first, last, str(node[:2])) for first, last, node, *_ in reply]
        return []

    def _node_of(self, index: int, ranges: list[tuple[int, int, str]]) -> str:
        if not ranges:
            return ""
        slot = slot_of(self._partitions[index].namespace)
        return next((node for first, last, node in ranges if first <= slot <= last), "")
