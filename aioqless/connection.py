"""One connection to Redis that all callers share.

What they send within a turn of the loop goes out in one write, and replies are handed out in the order of the requests. Sharing is safe
since nothing sent here blocks in Redis or changes the connection's state. A caller that is cancelled leaves its reply to be thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from redis import exceptions

from aioqless.servers import Place, greet, place_of
from aioqless.wire import AWAY, Command, Moved, Moving, Wire, open_wire

__all__ = ["AWAY", "Command", "Connection", "Sends"]

_ELSEWHERE = (exceptions.ReadOnlyError, Moved, Moving)


class Sends(Protocol):
    """What can be asked of a connection, whatever is between it and Redis."""

    async def execute(self, *command: str | bytes | int | float) -> Any:
        """Send one command and return its reply: bytes, int, None, or a list of these and of errors. Raises an error reply."""

    async def execute_many(self, commands: list[Command], *, raise_errors: bool = True) -> list[Any]:
        """Send commands in one write and return their replies; with `raise_errors` off, error replies are among them."""

    async def aclose(self) -> None:
        """End it for good."""


class Connection:
    """Connects when first used, and again after it broke. Calls under way when it breaks raise redis-py's ConnectionError: whether they
    were carried out is unknown. It ends, too, when the server says that it isn't the one to ask: the next one leads to the server that
    took over.

    A reply that takes longer than `timeout` seconds raises TimeoutError and ends the connection, for what it holds up. `before` is called
    before each attempt to connect.
    """

    def __init__(
        self,
        place: str | Place,
        *,
        timeout: float | None = None,
        name: str | None = None,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._place = place_of(place) if isinstance(place, str) else place
        self._timeout = timeout
        self._name = name
        self._before = before
        self._wire: Wire | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def execute(self, *command: str | bytes | int | float) -> Any:
        return (await self.execute_many([command]))[0]

    async def execute_many(self, commands: list[Command], *, raise_errors: bool = True) -> list[Any]:
        wire = self._wire
        if wire is None or wire.broken:
            wire = await self._connected()
        replies = [wire.send(command) for command in commands]
        try:
            async with asyncio.timeout(self._timeout):
                answered = [await reply for reply in replies]
        except TimeoutError:
            wire.close()
            raise exceptions.TimeoutError(f"Redis did not answer within {self._timeout} s") from None
        for answer in answered:
            if isinstance(answer, _ELSEWHERE):
                wire.close()
                self._place.heed(answer)
            if raise_errors and isinstance(answer, Exception):
                raise answer
        return answered

    async def aclose(self) -> None:
        """End the connection for good; calls under way, and later ones, raise ConnectionError."""
        self._closed = True
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
            await wire.gone.wait()

    async def _connected(self) -> Wire:
        async with self._connecting:
            if self._closed:
                raise exceptions.ConnectionError("the connection to Redis was closed")
            if self._wire is None or self._wire.broken:
                if self._before is not None:
                    await self._before()
                try:
                    async with asyncio.timeout(self._timeout):
                        self._wire = await self._connect()
                except (OSError, TimeoutError) as error:
                    raise exceptions.ConnectionError(f"can't connect to Redis at {self._place.address}: {error or 'no answer'}") from None
                except (exceptions.AuthenticationError, exceptions.ResponseError) as refused:
                    raise type(refused)(f"Redis at {self._place.address} refused this client: {refused}") from None
            return self._wire

    async def _connect(self) -> Wire:
        address = self._place.address
        wire = await open_wire(await self._place.find(), address.tls)
        try:
            name: list[Command] = [("CLIENT", "SETNAME", self._name.replace(" ", "_"))] if self._name else []
            await greet(wire, [*address.greetings, *name])
            await self._place.check(wire)
        except BaseException:
            wire.close()
            raise
        return wire
