"""Distribution: which node has which partitions, and how many jobs they have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.redis import Address, ClusterSlots, name_node, slot_of


@dataclass(frozen=True, kw_only=True)
class PartitionLoad:
    """A partition: where it is, and how many jobs it has.

    Attributes:
        number: Its number.
        namespace: Its namespace.
        slot: Its slot in a Cluster.
        node: Address of its node.
        reachable: Whether the node answers.
        waiting: Jobs that a worker may pop now.
        running: Jobs that a worker holds.
        others: Jobs that are scheduled, or held by dependencies.
    """

    number: int
    namespace: str
    slot: int
    node: str
    reachable: bool = True
    waiting: int = 0
    running: int = 0
    others: int = 0


async def measure_partitions(partitions: Sequence[Client], address: Address) -> list[PartitionLoad]:
    """Return where each partition is, and how many jobs it has.

    Raises:
        redis.exceptions.ConnectionError: No node answers.
    """
    slots = ClusterSlots(address) if address.kind == "cluster" else None

    async def measure(number: int, client: Client) -> PartitionLoad:
        slot = slot_of(client.namespace) if "{" in client.namespace else 0
        node = address.endpoints[0]
        if slots is not None:
            node = slots.recall(slot) or await slots.find(slot)
        load = PartitionLoad(
            number=number, namespace=client.namespace, slot=slot, node=name_node(node)
        )
        try:
            queues = await client.queues()
        except REDIS_UNAVAILABLE:
            return replace(load, reachable=False)
        return replace(
            load,
            waiting=sum(queue.waiting for queue in queues),
            running=sum(queue.running for queue in queues),
            others=sum(queue.scheduled + queue.depends for queue in queues),
        )

    first = await measure(0, partitions[0])
    others = [measure(number, each) for number, each in enumerate(partitions[1:], 1)]
    return [first, *await asyncio.gather(*others)]
