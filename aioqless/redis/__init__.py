"""How Redis is reached: one server, a service behind sentinels, or a Cluster.

address.py        Address          a URL, parsed and checked
topology.py       Topology         finds the server now; SingleServer is always at one address
topologies.py                      the topology of a URL
sentinel.py       Sentinels        the master that sentinels name
cluster.py        ClusterNode      the node of a Cluster that holds a namespace
redis_py.py                        redis-py's connections to the server of a topology
connection.py     Connection       one connection that all callers share
resp_protocol.py  RespProtocol     requests and replies on a connected socket
error_replies.py                   exceptions for error replies, and which mean "try again later"
durability.py     DurableWrites    writes that wait for replicas, or for the disk
pubsub.py                          subscriptions
encoding.py                        strings and JSON in replies
"""

from aioqless.redis.address import SCHEMES, Address, Endpoint, name_node, redact_url
from aioqless.redis.cluster import SLOTS, ClusterSlots, slot_of
from aioqless.redis.connection import CommandConnection, Connection, RedisCommand, Reply, Word
from aioqless.redis.durability import Durability
from aioqless.redis.error_replies import REDIS_UNAVAILABLE, SlotMigrating, SlotMoved
from aioqless.redis.pubsub import Gap, Subscriber, subscribe
from aioqless.redis.redis_py import Node, make_redis
from aioqless.redis.topologies import make_topology, read_topology
from aioqless.redis.topology import Topology

__all__ = [
    "REDIS_UNAVAILABLE",
    "SCHEMES",
    "SLOTS",
    "Address",
    "ClusterSlots",
    "CommandConnection",
    "Connection",
    "Durability",
    "Endpoint",
    "Gap",
    "Node",
    "RedisCommand",
    "Reply",
    "SlotMigrating",
    "SlotMoved",
    "Subscriber",
    "Topology",
    "Word",
    "make_redis",
    "make_topology",
    "name_node",
    "read_topology",
    "redact_url",
    "slot_of",
    "subscribe",
]
