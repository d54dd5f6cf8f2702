"""How Redis is reached: one server, a service behind sentinels, or a Cluster.

address.py        Address          a URL, parsed and checked
topology.py       SingleServer     the topology of a URL: one server, sentinels or a Cluster
sentinel.py       Sentinels        the master that sentinels name
cluster.py        ClusterNode      the node of a Cluster that holds a namespace
redis_py.py       Topology         finds the server now; redis-py's connections to it
connection.py     Connection       one connection that all callers share
resp_protocol.py  RespProtocol     requests and replies on a connected socket
error_replies.py                   exceptions for error replies, and which mean "try again later"
server_restriction.py              the servers that a process may use: within a test, that of tests
durability.py     DurableWrites    writes that wait for replicas, or for the disk
pubsub.py                          subscriptions
encoding.py                        strings and JSON in replies
"""

from aioqless.redis.address import Address, Endpoint, name_node
from aioqless.redis.cluster import SLOTS, ClusterSlots, slot_of
from aioqless.redis.connection import CommandConnection, Connection, RedisCommand, Reply, Word
from aioqless.redis.durability import Durability
from aioqless.redis.error_replies import REDIS_UNAVAILABLE, SlotMigrating, SlotMoved
from aioqless.redis.pubsub import Gap, Subscriber, subscribe
from aioqless.redis.redis_py import Node
from aioqless.redis.topology import read_topology

__all__ = [
    "REDIS_UNAVAILABLE",
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
    "Word",
    "name_node",
    "read_topology",
    "slot_of",
    "subscribe",
]
