"""The messages of all partitions, on one subscription to each node."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from redis import exceptions
from redis.asyncio import Redis
from typing_extensions import override

from aioqless.client import Client
from aioqless.redis import Gap, Subscriber, slot_of, subscribe
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait

PAUSE = 1.0  # seconds before a node is tried again
MOST_UNREAD = 10_000  # messages; then Redis waits for the reader, and disconnects it if it is slow

Item: TypeAlias = tuple[str, bytes] | Gap
Handle: TypeAlias = Callable[[Sequence[int], Item | Exception | None], Awaitable[object]]


async def listen_to_nodes(
    partitions: Sequence[Client], channels: Sequence[Sequence[str]], handle: Handle
) -> None:
    """Listen until canceled, on one subscription to each node that has some of the partitions.

    A subscription that breaks is made again on the nodes that have its partitions then.

    Args:
        partitions: The clients of the partitions.
        channels: The channels of each.
        handle: Gets the indexes of some partitions, and a message of one; or None, or what is
            missing, when their messages begin to arrive; or why these don't for now.
    """
    gaps: dict[int, Gap] = {}  # by partition, while it has no subscription

    async def divide(indexes: Iterable[int]) -> None:
        groups: dict[object, list[int]] = {}
        ranges = await _slot_ranges(partitions)
        for index in indexes:
            slot = slot_of(partitions[index].namespace) if ranges else 0
            node = next((node for first, last, node in ranges if first <= slot <= last), "")
            groups.setdefault(node, []).append(index)
        for group in groups.values():
            tasks.create_task(listen(group))

    async def listen(indexes: list[int]) -> None:
        owners = {channel: index for index in indexes for channel in channels[index]}
        redis, latest = partitions[indexes[0]].redis, time.time()
        try:
            async with subscribe(redis, *owners, report_silence=True) as messages:
                missed = [gaps.pop(index) for index in indexes if index in gaps]
                await handle(indexes, min(missed, default=None))
                async for channel, payload in messages:
                    latest = time.time()
                    if channel:
                        await handle([owners[channel]], (channel, payload))
        except exceptions.RedisError as error:
            log.debug("listener.failed", error=str(error))
            for index in indexes:
                gaps.setdefault(index, Gap(latest, str(error)))
            await handle(indexes, error)
            await asyncio.sleep(PAUSE)
        await divide(indexes)

    async with asyncio.TaskGroup() as tasks:
        await divide(range(len(partitions)))


async def _slot_ranges(partitions: Sequence[Client]) -> list[tuple[int, int, str]]:
    """Return which node has which slots, as any node knows it; nothing without a Cluster."""
    for partition in partitions:
        with contextlib.suppress(exceptions.RedisError):
            reply = await partition.internals.store.connection.execute("CLUSTER", "SLOTS")
            return [(first, last, str(node[:2])) for first, last, node, *_ in reply]
    return []


class PartitionedSubscriber(Subscriber):
    """Subscribes to the channels of all partitions, also while a node is away."""

    def __init__(self, redis: Redis, partitions: Sequence[Client]) -> None:
        super().__init__(redis, partitions[0].namespace)
        self._partitions = partitions

    @override
    @contextlib.asynccontextmanager
    async def listen(self, *names: str) -> AsyncIterator[AsyncIterator[Item]]:
        """Subscribe while the block is entered, as `Subscriber.listen` does.

        A `Gap` comes when the messages of a node arrive again. It raises when no node can be
        reached.
        """
        partitions = self._partitions
        channels = [[f"{each.namespace}:{name}" for name in names] for each in partitions]
        items: asyncio.Queue[Item] = asyncio.Queue(MOST_UNREAD)
        untried, is_tried = set(range(len(partitions))), asyncio.Event()
        errors: list[Exception] = []
        reached = False

        async def handle(indexes: Sequence[int], item: Item | Exception | None) -> None:
            nonlocal reached
            if isinstance(item, Exception):
                errors.append(item)
            else:
                reached = True
                if isinstance(item, Gap):
                    await items.put(item)
                elif item is not None:
                    await items.put((item[0].partition(":")[2], item[1]))
            untried.difference_update(indexes)
            if not untried:
                is_tried.set()

        async def read() -> AsyncIterator[Item]:
            while True:
                yield await items.get()

        task = asyncio.create_task(
            listen_to_nodes(partitions, channels, handle), name="aioqless partitioned subscriber"
        )
        try:
            await is_tried.wait()
            if not reached:
                raise errors[-1]
            yield read()
        finally:
            await cancel_and_wait(task)
