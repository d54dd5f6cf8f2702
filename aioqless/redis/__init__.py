"""Where Redis is: one server, a service that sentinels watch over, or a Cluster.

address.py      a URL, read
connections.py  redis-py's connections there
places.py       asking where the server is now; one that stays where it is
sentinel.py     the one that sentinels name
cluster.py      the node of a Cluster that holds a namespace
"""

from aioqless.redis.address import SCHEMES, Address, shown
from aioqless.redis.cluster import ClusterNode
from aioqless.redis.endpoints import OneServer, Place
from aioqless.redis.redis_py import connected, redis_at
from aioqless.redis.sentinel import Sentinels

__all__ = ["SCHEMES", "Address", "Place", "connected", "place_at", "place_of", "redis_at", "shown"]


def place_of(url: str, namespace: str = "") -> Place:
    """Where a URL leads, for a namespace. Raises ValueError for a URL that can't be, and for a
    namespace that a Cluster would scatter."""
    return place_at(Address.of(url), namespace)


def place_at(address: Address, namespace: str = "") -> Place:
    """The same for a URL that was read before."""
    match address.kind:
        case "sentinel":
            return Sentinels(address)
        case "cluster":
            return ClusterNode(address, namespace)
        case _:
            return OneServer(address)
