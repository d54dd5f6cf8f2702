"""The node of a Redis Cluster that holds a namespace.

All keys of a namespace are in one slot, so there is one such node at a time.
"""

from __future__ import annotations

import binascii
import re

from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from aioqless.redis.address import Address, Endpoint
from aioqless.redis.error_replies import SlotMoved
from aioqless.redis.redis_py import not_found, query
from aioqless.redis.resp_protocol import Reply

SLOTS = 16384

_OF_SHARD_CHANNELS = re.compile(r"[^{}]*\{\d+\.\d+\}")


def hash_tag(name: str) -> str:
    """Return the part in braces, which decides the slot of all keys with this prefix."""
    _, brace, rest = name.partition("{")
    tag, end, _ = rest.partition("}")
    return tag if brace and end else ""


def slot_of(namespace: str) -> int:
    """Return the slot of a namespace.

    Raises:
        ValueError: It has no hash tag, so that its keys would be on all nodes.
    """
    if not (tag := hash_tag(namespace)):
        raise ValueError(
            f"the namespace {namespace!r} has no hash tag: in a Redis Cluster all its keys must be "
            f"on one node, so name it {{{namespace}}}, or give the number of its partitions if it "
            "has some"
        )
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


def uses_shard_channels(namespace: str) -> bool:
    """Return whether messages of a namespace stay on its node: its hash tag is two numbers.

    A Cluster sends those of others to all nodes, which is too much where each has many namespaces.
    """
    return _OF_SHARD_CHANNELS.fullmatch(namespace) is not None


class ClusterSlots:
    """Finds the node of a slot: asks one node after the other.

    Owns the list of known nodes, and what the latest of them answered.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._nodes: list[Endpoint] = list(address.endpoints)
        self._ranges: list[tuple[int, int, Endpoint]] = []

    async def find(self, slot: int) -> Endpoint:
        """Return the address of the node that has a slot now.

        Raises:
            redis.exceptions.ConnectionError: No node answers, or none has the slot.
        """
        why: object = "no node answers"
        for node in list(self._nodes):
            # To the end of the list: a silent node may take all the time there is, and the next
            # attempt begins with another one.
            self._nodes.remove(node)
            self._nodes.append(node)
            try:
                (ranges,) = await query(
                    node, self._address, self._address.login, ("CLUSTER", "SLOTS")
                )
            except exceptions.RedisError as error:
                why = error if str(error) else why
                continue
            self._learn(node, ranges)
            if found := self.recall(slot):
                return found
            why = f"no node has slot {slot}"
        raise not_found(self._address, why)

    def recall(self, slot: int) -> Endpoint | None:
        """Return the node that had a slot when nodes were asked last."""
        for first, last, endpoint in self._ranges:
            if first <= slot <= last:
                return endpoint
        return None

    def _learn(self, source: Endpoint, ranges: list[Reply]) -> None:
        """Take over what a node said of all nodes."""
        self._ranges, nodes = [], [source]
        for first, last, *servers in ranges:
            endpoints = [_endpoint(server, source) for server in servers]
            nodes += endpoints
            self._ranges.append((first, last, endpoints[0]))
        self._nodes = list(dict.fromkeys([*nodes, *self._address.endpoints]))


class ClusterNode:
    """Finds the node of a namespace, and follows redirections."""

    def __init__(self, address: Address, namespace: str) -> None:
        self.address = address
        self.slot = slot_of(namespace)
        self._redirect: Endpoint | None = None
        self._slots = ClusterSlots(address)

    async def find(self) -> Endpoint:
        """Return the address of the node that has the slot.

        Raises:
            redis.exceptions.ConnectionError: No node answers, or none has the slot.
        """
        if self._redirect:
            redirect, self._redirect = self._redirect, None
            return redirect
        return await self._slots.find(self.slot)

    async def check(self, connection: AbstractConnection) -> None:
        """Accept any node: one without the slot refuses the first command."""

    def handle_redirect(self, error: Exception) -> bool:
        """Connect to the node that a redirection names."""
        if isinstance(error, SlotMoved):
            self._redirect = error.endpoint
        return True


def _endpoint(server: list[Reply], source: Endpoint) -> Endpoint:
    """Read the address of a node; one that doesn't know its name is at that of the source."""
    host = server[0].decode() if server[0] else ""
    return (host if host and host != "?" else source[0]), server[1]
