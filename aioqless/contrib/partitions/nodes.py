"""Connections to the nodes of a Cluster that several namespaces share: one to each node."""

from __future__ import annotations

import asyncio

from redis import exceptions

from aioqless.redis import (
    REDIS_UNAVAILABLE,
    Address,
    ClusterSlots,
    CommandConnection,
    Connection,
    Endpoint,
    Node,
    RedisCommand,
    Reply,
    SlotMigrating,
    SlotMoved,
    Word,
    name_node,
    slot_of,
)


class NodeConnections:
    """One connection to each node, which is made when a namespace on it is first used.

    Owns these connections. When one breaks, or a node redirects, the namespaces concerned look for
    their node again; those of other nodes aren't affected.
    """

    def __init__(self, address: Address, *, timeout: float, name: str) -> None:
        self._address = address
        self._timeout = timeout
        self._name = name
        self._slots = ClusterSlots(address)
        self._asking = asyncio.Lock()
        self._version = 0  # how often nodes were asked for the slots
        self._connections: dict[Endpoint, Connection] = {}
        self._closed = False

    def of(self, namespace: str) -> NamespaceConnection:
        """Return the connection of a namespace, which leads to its node."""
        return NamespaceConnection(self, slot_of(namespace))

    async def find(self, slot: int, seen: int) -> tuple[Endpoint, int]:
        """Return the node of a slot, and the version of the answer; `seen`: that of a wrong one."""
        async with self._asking:
            if seen == self._version or (endpoint := self._slots.recall(slot)) is None:
                endpoint = await self._slots.find(slot)
                self._version += 1
            return endpoint, self._version

    def connect(self, endpoint: Endpoint) -> Connection:
        """Return the connection to a node."""
        if self._closed:
            raise exceptions.ConnectionError("the connection to Redis was closed")
        if endpoint not in self._connections:
            self._connections[endpoint] = Connection(
                Node(self._address, endpoint), timeout=self._timeout, name=self._name
            )
        return self._connections[endpoint]

    async def aclose(self) -> None:
        """Close all connections for good."""
        self._closed = True
        for connection in self._connections.values():
            await connection.aclose()


class NamespaceConnection:
    """The way to one namespace over the connections that it shares with others.

    Attributes:
        endpoint: Address of the node that the latest command was for; None before the first one.
    """

    def __init__(self, nodes: NodeConnections, slot: int) -> None:
        self.endpoint: Endpoint | None = None
        self.aclose = nodes.aclose  # also those of the other namespaces
        self._nodes = nodes
        self._slot = slot
        self._connection: Connection | None = None
        self._version = 0

    async def execute(self, *command: Word) -> Reply:
        """Send one command and return its reply."""
        connection = self._connection or await self._find()
        try:
            return await connection.execute(*command)
        except REDIS_UNAVAILABLE as error:
            self._look_elsewhere(connection, error)
            raise

    async def execute_many(
        self, commands: list[RedisCommand], *, raise_errors: bool = True
    ) -> list[Reply]:
        """Send commands in one write and return their replies."""
        connection = self._connection or await self._find()
        try:
            replies = await connection.execute_many(commands, raise_errors=raise_errors)
        except REDIS_UNAVAILABLE as error:
            self._look_elsewhere(connection, error)
            raise
        for reply in replies:
            if isinstance(reply, REDIS_UNAVAILABLE):
                self._look_elsewhere(connection, reply)
        return replies

    async def _find(self) -> Connection:
        endpoint, self._version = await self._nodes.find(self._slot, self._version)
        return self._connect(endpoint)

    def _connect(self, endpoint: Endpoint) -> Connection:
        self._connection = connection = self._nodes.connect(endpoint)
        self.endpoint = endpoint
        return connection

    def _look_elsewhere(self, failed: Connection, error: Exception) -> None:
        """Choose another connection before the next command, unless that was done meanwhile."""
        if self._connection is not failed or isinstance(error, SlotMigrating):
            return
        self._connection = None
        if isinstance(error, SlotMoved) and error.endpoint:
            self._connect(error.endpoint)


def node_of(connection: CommandConnection) -> str | None:
    """Return the address of the node that the latest command was for; None without a Cluster."""
    if isinstance(connection, NamespaceConnection) and connection.endpoint:
        return name_node(connection.endpoint)
    return None
