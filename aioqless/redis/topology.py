"""The topology that a URL names; SingleServer is the simplest."""

from __future__ import annotations

from redis.asyncio.connection import AbstractConnection

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address, Endpoint
from aioqless.redis.cluster import ClusterNode
from aioqless.redis.error_replies import SlotMigrating, SlotMoved
from aioqless.redis.redis_py import Topology
from aioqless.redis.sentinel import Sentinels


class SingleServer:
    """A server that is always at one address, which a fail-over moves to the next server."""

    def __init__(self, address: Address) -> None:
        self.address = address

    async def find(self) -> Endpoint:
        """Return the address of the server."""
        return self.address.endpoints[0]

    async def check(self, connection: AbstractConnection) -> None:
        """Accept any server."""

    def handle_redirect(self, error: Exception) -> bool:
        """Refuse redirections of a Cluster."""
        if isinstance(error, SlotMoved | SlotMigrating):
            raise AioqlessError(
                f"Redis at {self.address} is a node of a Cluster, which has other nodes for other "
                "namespaces: begin its URL with redis+cluster:// and name several nodes"
            )
        return True


def read_topology(url: str, namespace: str = "") -> Topology:
    """Return the topology that a URL names.

    Raises:
        ValueError: The URL is wrong, or a Cluster would scatter the keys of the namespace.
    """
    return make_topology(Address.parse(url), namespace)


def make_topology(address: Address, namespace: str = "") -> Topology:
    """Return the topology of an address.

    Raises:
        ValueError: A Cluster would scatter the keys of the namespace.
    """
    match address.kind:
        case "sentinel":
            return Sentinels(address)
        case "cluster":
            return ClusterNode(address, namespace)
        case _:
            return SingleServer(address)
