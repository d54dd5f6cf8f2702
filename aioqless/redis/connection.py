"""One connection to Redis that all callers share.

A command goes out at once while no reply is pending; the others of an event-loop iteration go out
in one write. Replies are matched to them in order. Sharing is safe since nothing sent here blocks
in Redis or changes the state of the connection. The reply to a caller that was canceled is thrown
away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from redis import exceptions

from aioqless.redis.error_replies import (
    REDIS_UNAVAILABLE,
    ReadOnlyServer,
    SlotMigrating,
    SlotMoved,
)
from aioqless.redis.redis_py import Topology, connect
from aioqless.redis.resp_protocol import OTHER_LOOP, RedisCommand, Reply, RespProtocol, Word
from aioqless.redis.server_restriction import restriction
from aioqless.redis.topology import read_topology
from aioqless.runtime.tasks import cancel_and_wait

__all__ = ["REDIS_UNAVAILABLE", "CommandConnection", "Connection", "RedisCommand", "Reply", "Word"]

CLOSE_TIMEOUT = 1.0  # seconds
_REDIRECTS = (ReadOnlyServer, SlotMoved, SlotMigrating)


class CommandConnection(Protocol):
    """Sends commands to Redis, by whatever way."""

    async def execute(self, *command: Word) -> Reply:
        """Send one command and return its reply.

        Raises:
            redis.exceptions.RedisError: The reply is an error, or there is none.
        """

    async def execute_many(
        self, commands: list[RedisCommand], *, raise_errors: bool = True
    ) -> list[Reply]:
        """Send commands in one write and return their replies.

        Args:
            commands: The commands.
            raise_errors: Raise the first error reply; else errors are among the replies.
        """

    async def aclose(self) -> None:
        """Close it for good."""


class Connection:
    """Connects when first used, and again after it broke.

    Calls under way when it breaks raise redis-py's ConnectionError: whether they were carried out
    is unknown. It is also closed when the server redirects: the next one leads to the server that
    took over.

    Owns the attempt to connect, which all callers wait for together: if it fails, it fails for all
    of them.

    Args:
        server: A URL or a topology.
        timeout: Seconds that connecting, handshake included, and each reply may take; a reply that
            takes longer raises TimeoutError and closes the connection. Default for connecting: the
            URL's socket_connect_timeout.
        name: Name of the connection in `CLIENT LIST`.
        before_connect: Called before each attempt to connect.
    """

    def __init__(
        self,
        server: str | Topology,
        *,
        timeout: float | None = None,
        name: str | None = None,
        before_connect: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._topology = read_topology(server) if isinstance(server, str) else server
        self._timeout = timeout
        self._name = name
        self._before_connect = before_connect
        self._protocol: RespProtocol | None = None
        self._connecting: asyncio.Task[Exception | None] | None = None
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse calls on other event loops, also before it is first used."""
        self._loop = loop

    async def execute(self, *command: Word) -> Reply:
        """Send one command and return its reply."""
        protocol = self._protocol
        if restriction.url is not None:
            restriction.check(self._topology.address)
        if protocol is None or protocol.broken or not protocol.writable.is_set():
            protocol = await self._wait_writable()
        reply = await protocol.send(command)
        if isinstance(reply, Exception):
            self._handle_redirect(protocol, reply)
            raise reply
        return reply

    async def execute_many(
        self, commands: list[RedisCommand], *, raise_errors: bool = True
    ) -> list[Reply]:
        """Send commands in one write and return their replies."""
        protocol = self._protocol
        if restriction.url is not None:
            restriction.check(self._topology.address)
        if protocol is None or protocol.broken or not protocol.writable.is_set():
            protocol = await self._wait_writable()
        sent = [protocol.send(command, at_once=False) for command in commands]
        replies = [await reply for reply in sent]
        for reply in replies:
            if isinstance(reply, Exception):
                self._handle_redirect(protocol, reply)
                if raise_errors:
                    raise reply
        return replies

    async def aclose(self) -> None:
        """Close it for good; calls under way, and later ones, raise ConnectionError."""
        self._closed = True
        if self._connecting is not None:
            await cancel_and_wait(self._connecting)
        if self._protocol is not None:
            self._protocol.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._protocol.closed.wait()

    def _handle_redirect(self, protocol: RespProtocol, error: Exception) -> None:
        if isinstance(error, _REDIRECTS) and self._topology.handle_redirect(error):
            protocol.close()

    async def _wait_writable(self) -> RespProtocol:
        protocol = self._protocol
        if protocol is None or protocol.broken:
            protocol = await self._wait_connected()
        while not protocol.writable.is_set():
            await protocol.writable.wait()
        return protocol

    async def _wait_connected(self) -> RespProtocol:
        if self._loop is not None and asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(OTHER_LOOP)
        if not self._closed:
            if self._connecting is None or self._connecting.done():
                self._connecting = asyncio.create_task(self._connect(), name="aioqless connection")
            attempt = self._connecting
            await asyncio.wait([attempt])
            if not attempt.cancelled() and (error := attempt.result()):
                raise error.with_traceback(None)
        if self._closed or self._protocol is None:
            raise exceptions.ConnectionError("the connection to Redis was closed")
        return self._protocol

    async def _connect(self) -> Exception | None:
        """Connect; return why it failed, since several callers may wait for that, or none."""
        try:
            if self._before_connect is not None:
                await self._before_connect()
            connection = await connect(self._topology, timeout=self._timeout, name=self._name)
            protocol = RespProtocol(self._timeout, connection.server)
            protocol.attach(connection.detach(protocol))
        except Exception as error:
            return error
        self._protocol = protocol
        return None
