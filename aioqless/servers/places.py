"""Where the server is now that holds a namespace."""

from __future__ import annotations

from typing import Any, Protocol

from redis import exceptions

from aioqless.errors import AioqlessError
from aioqless.servers.address import Address
from aioqless.wire import AWAY, Command, Endpoint, Moved, Moving, Wire, open_wire


class Place(Protocol):
    """Asked before each attempt to connect."""

    @property
    def address(self) -> Address: ...

    async def find(self) -> Endpoint:
        """Where to connect now. Raises redis-py's ConnectionError when nobody can tell, AioqlessError when that won't change by itself."""
        ...

    async def check(self, wire: Wire) -> None:
        """Raises redis-py's ConnectionError when what was found isn't the server that is looked for, any more."""
        ...

    def heed(self, error: Exception) -> None:
        """The server said that it isn't the one to ask. Raises AioqlessError when it never will be."""
        ...


class OneServer:
    """It is always at the same place; whoever takes over gets its address."""

    def __init__(self, address: Address) -> None:
        self.address = address

    async def find(self) -> Endpoint:
        return self.address.endpoints[0]

    async def check(self, wire: Wire) -> None:
        pass

    def heed(self, error: Exception) -> None:
        if isinstance(error, Moved | Moving):
            raise AioqlessError(
                f"Redis at {self.address} is a node of a Cluster, which has other nodes for other namespaces: begin its URL "
                "with redis+cluster:// and name several nodes"
            )


async def greet(wire: Wire, greetings: list[Command]) -> None:
    """Say who we are. Raises what the server refuses it with."""
    for greeting, reply in [(greeting, wire.send(greeting)) for greeting in greetings]:
        answer = await reply
        # A name is not worth failing for, unless what is wrong is that nobody may do anything.
        if isinstance(answer, Exception) and (greeting[0] != "CLIENT" or isinstance(answer, AWAY)):
            raise answer


async def asked(endpoint: Endpoint, address: Address, greetings: list[Command], *questions: Command) -> list[Any]:
    """The answers to questions on a connection of its own. Raises OSError and redis-py's errors."""
    wire = await open_wire(endpoint, address.tls)
    try:
        await greet(wire, greetings)
        answers = [await answer for answer in [wire.send(question) for question in questions]]
    finally:
        wire.close()
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def nobody(address: Address, why: object) -> exceptions.ConnectionError:
    """Nobody of those asked could tell where the server is."""
    return exceptions.ConnectionError(f"can't find Redis by {address}: {why}")
