"""The node of a Redis Cluster that holds a namespace. All keys of a namespace are in one slot, so
there is one such node at a time."""

from __future__ import annotations

import binascii
from typing import Any

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from aioqless.redis.address import Address, Endpoint
from aioqless.redis.error_replies import Moved
from aioqless.redis.redis_py import asked, nobody

SLOTS = 16384


def hash_tag(name: str) -> str:
    """What in braces decides on the slot of all keys that begin with a name; empty for none."""
    _, brace, rest = name.partition("{")
    tag, end, _ = rest.partition("}")
    return tag if brace and end else ""


def slot_of(namespace: str) -> int:
    """The slot of a namespace. Raises ValueError for one without a hash tag: its keys would be all
    over the Cluster."""
    if not (tag := hash_tag(namespace)):
        raise ValueError(
            f"the namespace {namespace!r} has no hash tag: in a Redis Cluster all its keys must be on one node, so name it {{{namespace}}}"
        )
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


class ClusterNode:
    """Owns what is known of the nodes. It is told by whoever answers first; when the slot moves,
    the node that had it tells where it is."""

    def __init__(self, address: Address, namespace: str) -> None:
        self.address = address
        self.slot = slot_of(namespace)
        self._told: Endpoint | None = None
        self._nodes: list[Endpoint] = list(address.endpoints)

    async def find(self) -> Endpoint:
        if self._told:
            told, self._told = self._told, None
            return told
        why: object = "no node answers"
        for node in list(self._nodes):
            self._nodes.remove(
                node
                # to the end: a silent node may take all the time there is, and the next attempt
                # begins with another
            )
            self._nodes.append(node)
            try:
                (ranges,) = await asked(
                    node, self.address, self.address.login, ("CLUSTER", "SLOTS")
                )
            except exceptions.RedisError as error:
                why = error if str(error) else why
                continue
            if found := self._learn(node, ranges):
                return found
            why = f"no node has slot {self.slot}"
        raise nobody(self.address, why)

    async def check(self, connection: AbstractConnection) -> None:
        pass  # a node that hasn't the slot says so when it is asked for anything

    def heed(self, error: Exception) -> None:
        if isinstance(error, Moved):
            self._told = error.endpoint

    def _learn(self, by: Endpoint, ranges: list[Any]) -> Endpoint | None:
        """Take in what a node said of all; returns the one with the slot."""
        found, nodes = None, [by]
        for first, last, *servers in ranges:
            here = [_endpoint(server, by) for server in servers]
            nodes += here
            if first <= self.slot <= last:
                found = here[0]
        self._nodes = list(dict.fromkeys([*nodes, *self.address.endpoints]))
        return found


def _endpoint(server: list[Any], by: Endpoint) -> Endpoint:
    """A node that doesn't know its own name is where it was found."""
    host = server[0].decode() if server[0] else ""
    return (host if host and host != "?" else by[0]), server[1]
