"""NodeOutages: which nodes can be reached, as all their partitions find out together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from redis import exceptions
from typing_extensions import override

from aioqless.client import CommandConnection
from aioqless.contrib.partitions.nodes import NamespaceConnection
from aioqless.redis import Endpoint, SlotMigrating, SlotMoved, name_node
from aioqless.runtime.log import bound
from aioqless.worker import ReconnectDelays
from aioqless.worker.context import Outage

# Errors of one partition: its slot is on its way, or the user may not use it. Others of its node
# aren't affected.
_OF_ONE = (SlotMoved, SlotMigrating, exceptions.NoPermissionError)


class NodeOutages:
    """Owns an `Outage` for each node, so that an outage is two lines of the log."""

    def __init__(self, delays: ReconnectDelays) -> None:
        self.delays = delays
        self.partitions: list[PartitionOutage] = []
        self._nodes: dict[Endpoint | None, NodeOutage] = {}

    def add(self, number: int, connection: CommandConnection) -> PartitionOutage:
        """Return the outage of a partition, whose connection leads to its node."""
        self.partitions.append(PartitionOutage(self, number, connection))
        return self.partitions[-1]

    def of(self, connection: CommandConnection) -> NodeOutage:
        """Return the outage of the node to which a connection leads now."""
        node = connection.endpoint if isinstance(connection, NamespaceConnection) else None
        if (found := self._nodes.get(node)) is None:
            found = self._nodes[node] = NodeOutage(self, node)
        return found


class NodeOutage(Outage):
    """Whether a node can be reached; without an address the only one, or any before a call."""

    def __init__(self, nodes: NodeOutages, address: Endpoint | None) -> None:
        super().__init__(nodes.delays)
        self.address = address
        self._nodes = nodes
        self._logged = address  # the address in the next line: after a failover, the other node's
        self._partitions = 0  # that the last outage concerned
        self._check: asyncio.Task[None] | None = None

    async def check_once(self, check: Callable[[], Coroutine[object, object, None]]) -> None:
        """Call `check` unless it was called for this node; all callers wait for its end."""
        if self._check is None:
            with bound(partition=...):
                self._check = asyncio.create_task(check())
        await self._check

    def move_to(self, other: NodeOutage) -> None:
        """End the outage: another node has the partitions now."""
        self._logged = other.address
        self.record_success()

    @override
    def log(self, level: str, event: str, **fields: object) -> None:
        if level == "error":
            self._partitions = sum(each.node is self for each in self._nodes.partitions)
            self._logged = self.address
        node = {} if self._logged is None else {"node": name_node(self._logged)}
        with bound(partition=...):  # not the one that found out
            super().log(level, event, **fields, **node, partitions=self._partitions)


class PartitionOutage(Outage):
    """Whether a partition can be reached: its node can, and its slot isn't on its way."""

    def __init__(self, nodes: NodeOutages, number: int, connection: CommandConnection) -> None:
        super().__init__(nodes.delays)
        self._nodes = nodes
        self._number = number
        self._connection = connection
        self._failed: NodeOutage | None = None  # the node that didn't answer the last call

    @property
    def node(self) -> NodeOutage:
        """That of the node that it was on when last called."""
        return self._nodes.of(self._connection)

    @property
    @override
    def reached(self) -> bool:
        """Whether the last call was answered."""
        return super().reached and self.node.reached

    @override
    def record_failure(self, error: Exception, asked: float) -> float:
        if isinstance(error, _OF_ONE):
            return super().record_failure(error, asked)
        self._failed = self.node
        return self._failed.record_failure(error, asked)

    @override
    async def wait_after_failure(self, error: Exception, asked: float) -> None:
        if isinstance(error, _OF_ONE):
            await super().wait_after_failure(error, asked)
        else:
            self._failed = self.node
            await self._failed.wait_after_failure(error, asked)

    @override
    def record_success(self, *, permitted: bool = False) -> None:
        super().record_success(permitted=permitted)
        node, failed, self._failed = self.node, self._failed, None
        node.record_success()
        if failed is not None and failed is not node:
            failed.move_to(node)

    @override
    def log(self, level: str, event: str, **fields: object) -> None:
        with bound(partition=self._number):
            super().log(level, event, **fields)
