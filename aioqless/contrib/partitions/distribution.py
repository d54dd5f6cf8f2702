"""Distribution: which node has which partitions, and how many jobs they have."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.client.queue_statistics import QueueOverview
from aioqless.contrib.partitions.nodes import node_of
from aioqless.redis import Address, name_node, slot_of


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
    reachable: bool
    waiting: int
    running: int
    others: int


async def measure_partitions(partitions: Sequence[Client], address: Address) -> list[PartitionLoad]:
    """Return where each partition is, and how many jobs it has."""

    async def measure(number: int, client: Client) -> PartitionLoad:
        queues: list[QueueOverview] = []
        reachable = False
        with contextlib.suppress(*REDIS_UNAVAILABLE):
            queues, reachable = await client.queues(), True
        return PartitionLoad(
            number=number,
            namespace=client.namespace,
            slot=slot_of(client.namespace) if "{" in client.namespace else 0,
            node=node_of(client.internals.store.connection) or name_node(address.endpoints[0]),
            reachable=reachable,
            waiting=sum(queue.waiting for queue in queues),
            running=sum(queue.running for queue in queues),
            others=sum(queue.scheduled + queue.depends for queue in queues),
        )

    return list(await asyncio.gather(*map(measure, range(len(partitions)), partitions)))
