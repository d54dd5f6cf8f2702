"""The topology that a URL names."""

from __future__ import annotations

from aioqless.redis.address import Address
from aioqless.redis.cluster import ClusterNode
from aioqless.redis.sentinel import Sentinels
from aioqless.redis.topology import SingleServer, Topology


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
