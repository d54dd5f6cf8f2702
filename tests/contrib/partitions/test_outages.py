"""Which nodes a partitioned worker considers unavailable, and what it logs about them."""

from __future__ import annotations

import time

from redis import exceptions

from aioqless.contrib.partitions.nodes import NamespaceConnection, NodeConnections
from aioqless.contrib.partitions.outages import NodeOutages, PartitionOutage
from aioqless.redis.address import Address
from aioqless.redis.error_replies import SlotMigrating
from aioqless.worker import ReconnectDelays
from tests.worker.conftest import Lines

A, B = ("10.0.0.1", 7001), ("10.0.0.2", 7002)


def make_partitions() -> list[tuple[PartitionOutage, NamespaceConnection]]:
    """Return two partitions on node A, and one on node B; none is ever called."""
    nodes = NodeConnections(Address.parse("redis+cluster://10.0.0.1:7001"), timeout=1, name="test")
    outages = NodeOutages(ReconnectDelays())
    made = []
    for number, node in enumerate((A, A, B)):
        connection = nodes.of(f"billing{{{number}.0}}")
        connection.endpoint = node
        made.append((outages.add(number, connection), connection))
    for outage, _ in made:
        outage.record_success()
    return made


def lose(outage: PartitionOutage) -> None:
    outage.record_failure(exceptions.ConnectionError("refused"), time.monotonic())


async def test_outage_ends_when_another_node_has_the_partitions(lines: Lines) -> None:
    (first, connection), (second, other), _ = make_partitions()
    lose(first)
    lose(second)
    for outage, moved in ((first, connection), (second, other)):
        moved.endpoint = B
        outage.record_success()
    (back,) = lines.of("worker.redis_reconnected")
    assert (back["node"], back["partitions"]) == ("10.0.0.2:7002", 2)
    lose(second)
    assert [line["partitions"] for line in lines.of("worker.redis_lost")] == [2, 3]


async def test_slot_that_is_moved_concerns_its_partition_only(lines: Lines) -> None:
    (first, _), (second, _), _ = make_partitions()
    first.record_failure(SlotMigrating("ASK 1 10.0.0.2:7002"), time.monotonic())
    second.record_success()
    assert second.reached and not first.reached
    first.record_success()
    assert first.reached
    (lost,), (back,) = lines.of("worker.redis_lost"), lines.of("worker.redis_reconnected")
    assert lost["partition"] == back["partition"] == 0
