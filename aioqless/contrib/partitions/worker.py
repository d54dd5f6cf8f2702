"""PartitionedWorker: runs the jobs of all partitions of a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, cast

from typing_extensions import override

from aioqless.contrib.partitions.client import PartitionedClient
from aioqless.contrib.partitions.outages import NodeOutages
from aioqless.contrib.partitions.routing import recurring_jid
from aioqless.contrib.partitions.subscriber import Item, listen_to_nodes
from aioqless.contrib.partitions.turns import PartitionSlots, Turns
from aioqless.errors import NameTaken
from aioqless.handlers import Source
from aioqless.redis import Gap
from aioqless.runtime.log import bound
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.worker import AnyWorker, Settings
from aioqless.worker.parts.scheduler import Declarations
from aioqless.worker.shared import Shared
from aioqless.worker.worker import CLOSE_INTERVAL, LOCKS_TIMEOUT, Consumer


class PartitionedWorker(AnyWorker):
    """Runs the jobs of all partitions, or of some: a consumer of each, which share their slots.

    Pops go to several nodes at once, at most one to each node, and partitions take turns. A node
    that is down delays the jobs of its own partitions only.

    Args:
        client: The client of the partitions.
        jobs: What runs, as for `Worker`.
        settings: How it behaves; `concurrency` is that of all partitions together.
        name: A stable name, as for `Worker`.
        on_stopping: Called once when it begins to stop.
        only: The numbers of the partitions to serve; None: all.

    Raises:
        TypeError, ValueError, AioqlessError: As for `Worker`; also for a partition that
            doesn't exist.
    """

    def __init__(
        self,
        client: PartitionedClient,
        *jobs: Source,
        settings: Settings | None = None,
        name: str | None = None,
        on_stopping: Callable[[], object] | None = None,
        only: Collection[int] | None = None,
    ) -> None:
        numbers = sorted(range(client.count) if only is None else set(only))
        for number in numbers:
            if number not in range(client.count):
                raise ValueError(f"only names partition {number}, of {client.count}")
        if not numbers:
            raise ValueError("only must name at least one partition, or be None for all")
        shared = Shared(client, *jobs, settings=settings, name=name, on_stopping=on_stopping)
        super().__init__(client, shared)
        self._numbers = numbers
        self._clients = [client.partitions[number] for number in numbers]
        self._turns = Turns(shared)
        self._slots: list[PartitionSlots] = []
        self._lost: list[NameTaken] = []  # who has the name by now, in some partitions
        outages = NodeOutages(self.settings.reconnect)
        dedicated = cast(Any, client.internals.access.make_dedicated_store("locks", LOCKS_TIMEOUT))
        self._consumers = consumers = list[Consumer]()
        for number, each in zip(numbers, self._clients, strict=True):
            declared = None
            if self.settings.scheduler:  # the recurring jobs that are in this partition
                declared = Declarations(each, self.handlers, partial(_jid_in, client, number))
            store, locks = each.internals.store, dedicated.stores[number]
            outage = outages.add(number, store.connection)
            slots = PartitionSlots(self._turns, outage, store)
            self._slots.append(slots)
            consumers.append(
                Consumer(each, shared, declared, outage=outage, locks=locks, slots=slots)
            )

    @override
    async def run(self) -> None:
        """Work until stopped: see `AnyWorker.run`."""
        channels = [consumer.listener.channels for consumer in self._consumers]
        async with self._reported():
            self._log_start()
            async with self._shared.opened(), asyncio.TaskGroup() as group:
                beside = [
                    group.create_task(self._turns.run()),
                    group.create_task(listen_to_nodes(self._clients, channels, self._handle)),
                ]
                async with asyncio.TaskGroup() as working:
                    for index in range(len(self._consumers)):
                        working.create_task(self._run_one(index))
                await cancel_and_wait(*beside, every=CLOSE_INTERVAL)
            if self._lost:
                raise self._lost[0]

    async def _run_one(self, index: int) -> None:
        """Run the consumer of a partition as soon as its node answers."""
        lifecycle, consumer = self._shared.lifecycle, self._consumers[index]
        with bound(partition=self._numbers[index]):
            await self._slots[index].reach()
            if lifecycle.stopping:
                return
            try:
                async with consumer.named():
                    await self._slots[index].outage.node.check_once(consumer.check_server)
                    await consumer.run()
            except NameTaken as taken:
                if not lifecycle.stopping:
                    raise
                self._lost.append(taken)  # the others release their jobs first

    async def _handle(self, indexes: Sequence[int], item: Item | Exception | None) -> None:
        """Handle a message, or make up for those from before a subscription existed."""
        for listener in (self._consumers[index].listener for index in indexes):
            if item is None or isinstance(item, Gap):
                listener.catch_up(listener.channels)
            elif not isinstance(item, Exception):
                await listener.handle(*item)


def _jid_in(client: PartitionedClient, number: int, klass: str) -> str | None:
    """Return the jid of a recurring job if it is in this partition."""
    jid = recurring_jid(klass, client.count)
    return jid if client.partition_of(jid) == number else None
