"""How Redis is reached: one server, a service behind sentinels, or a Cluster.

address.py        Address          a URL, parsed and checked
topology.py       Topology         finds the server now; SingleServer is always at one address
sentinel.py       Sentinels        the master that sentinels name
cluster.py        ClusterNode      the node of a Cluster that holds a namespace
nodes.py          NodeConnections  one connection to each node of a Cluster, for several namespaces
redis_py.py                        redis-py's connections to the server of a topology
connection.py     Connection       one connection that all callers share
resp_protocol.py  RespProtocol     requests and replies on a connected socket
error_replies.py                   exceptions for error replies, and which mean "try again later"
durability.py     DurableWrites    writes that wait for replicas, or for the disk
pubsub.py                          subscriptions
encoding.py                        strings and JSON in replies
"""

from aioqless.redis.address import SCHEMES, Address, redact_url
from aioqless.redis.cluster import ClusterNode
from aioqless.redis.redis_py import connect, make_redis
from aioqless.redis.sentinel import Sentinels
from aioqless.redis.topology import SingleServer, Topology

__all__ = [
    "SCHEMES",
    "Address",
    "Topology",
    "connect",
    "make_redis",
    "make_topology",
    "read_topology",
    "redact_url",
]


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
