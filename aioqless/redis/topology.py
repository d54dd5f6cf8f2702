"""Finds the server that holds a namespace now."""

from __future__ import annotations

from typing import Protocol

from redis.asyncio.connection import AbstractConnection

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address, Endpoint
from aioqless.redis.error_replies import SlotMigrating, SlotMoved
from aioqless.redis.redis_py import Target


class Topology(Target, Protocol):
    """Says where to connect before each attempt, and learns from redirections."""

    def handle_redirect(self, error: Exception) -> bool:
        """Note that a server said that another one must be asked.

        Returns:
            Whether the connection to this server is of no more use.

        Raises:
            AioqlessError: This kind of topology can't follow the redirection.
        """


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
