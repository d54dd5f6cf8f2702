"""One connection to Redis that all callers share.

What they send within a turn of the loop goes out in one write, and replies are handed out in the
order of the requests. Sharing is safe since nothing sent here blocks in Redis or changes the
connection's state. A caller that is cancelled leaves its reply to be thrown away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from redis import exceptions

from aioqless.redis import Place, connected, place_of
from aioqless.redis.error_replies import AWAY, Moved, Moving
from aioqless.redis.resp_protocol import Command, Wire
from aioqless.waiting import cancel_and_wait

__all__ = ["AWAY", "Command", "Connection", "Sends"]

CLOSING = 1.0  # seconds for a socket to close
_ELSEWHERE = (exceptions.ReadOnlyError, Moved, Moving)


class Sends(Protocol):
    """What can be asked of a connection, whatever is between it and Redis."""

    async def execute(self, *command: str | bytes | int | float) -> Any:
        """Send one command and return its reply: bytes, int, None, or a list of these and of
        errors. Raises an error reply."""

    async def execute_many(
        self, commands: list[Command], *, raise_errors: bool = True
    ) -> list[Any]:
        """Send commands in one write and return their replies; with `raise_errors` off, error
        replies are among them."""

    async def aclose(self) -> None:
        """End it for good."""


class Connection:
    """Connects when first used, and again after it broke. Calls under way when it breaks raise
    redis-py's ConnectionError: whether they were carried out is unknown. It ends, too, when the
    server says that it isn't the one to ask: the next one leads to the server that took over.

    Connecting and greeting may take `timeout` seconds (else the URL's socket_connect_timeout), and
    so may each reply: one that takes longer raises TimeoutError and ends the connection, for what
    it holds up. `before` is called before each attempt to connect.

    Owns the attempt to connect, which all callers wait for together: when it fails, it fails for
    all of them."""

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
        self._connecting: asyncio.Task[Exception | None] | None = None
        self._closed = False

    async def execute(self, *command: str | bytes | int | float) -> Any:
        wire = self._wire
        if wire is None or wire.broken:
            wire = await self._connected()
        while not wire.writable.is_set():
            await wire.writable.wait()
        answer = await wire.send(command)
        if isinstance(answer, Exception):
            self._heed(wire, answer)
            raise answer
        return answer

    async def execute_many(
        self, commands: list[Command], *, raise_errors: bool = True
    ) -> list[Any]:
        wire = self._wire
        if wire is None or wire.broken:
            wire = await self._connected()
        while not wire.writable.is_set():
            await wire.writable.wait()
        replies = [wire.send(command) for command in commands]
        answered = [await reply for reply in replies]
        for answer in answered:
            if isinstance(answer, Exception):
                self._heed(wire, answer)
                if raise_errors:
                    raise answer
        return answered

    async def aclose(self) -> None:
        """End the connection for good; calls under way, and later ones, raise ConnectionError."""
        self._closed = True
        if self._connecting is not None:
            await cancel_and_wait(self._connecting)
        if self._wire is not None:
            self._wire.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await self._wire.gone.wait()

    def _heed(self, wire: Wire, answer: Exception) -> None:
        if isinstance(answer, _ELSEWHERE):
            wire.close()
            self._place.heed(answer)

    async def _connected(self) -> Wire:
        if not self._closed:
            if self._connecting is None or self._connecting.done():
                self._connecting = asyncio.create_task(self._connect(), name="aioqless connection")
            attempt = self._connecting
            await asyncio.wait([attempt])
            if not attempt.cancelled() and (error := attempt.result()):
                raise error.with_traceback(None)
        if self._closed or self._wire is None:
            raise exceptions.ConnectionError("the connection to Redis was closed")
        return self._wire

    async def _connect(self) -> Exception | None:
        """Return why there is no connection: several callers may wait for that, or none any
        more."""
        try:
            if self._before is not None:
                await self._before()
            connection = await connected(self._place, limit=self._timeout, name=self._name)
            wire = Wire(self._timeout)
            wire.begin(connection.hand_over(wire))
        except Exception as error:
            return error
        self._wire = wire
        return None
