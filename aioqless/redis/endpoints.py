"""Where the server is now that holds a namespace."""

from __future__ import annotations

from typing import Protocol

from redis.asyncio.connection import AbstractConnection

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address, Endpoint
from aioqless.redis.error_replies import Moved, Moving
from aioqless.redis.redis_py import Target


class Place(Target, Protocol):
    """Says where to connect before each attempt, and learns from servers that refuse to be the
    one."""

    def heed(self, error: Exception) -> None:
        """The server said that it isn't the one to ask. Raises AioqlessError when it never will
        be."""
        ...


class OneServer:
    """It is always at the same place; whoever takes over gets its address."""

    def __init__(self, address: Address) -> None:
        self.address = address

    async def find(self) -> Endpoint:
        return self.address.endpoints[0]

    async def check(self, connection: AbstractConnection) -> None:
        pass

    def heed(self, error: Exception) -> None:
        if isinstance(error, Moved | Moving):
            raise AioqlessError(
                f"Redis at {self.address} is a node of a Cluster, which has other nodes for other namespaces: begin its URL "
                "with redis+cluster:// and name several nodes"
            )
