"""redis-py's connections to the server of a topology, for commands and for subscriptions.

They have one timeout for everything from name resolution to the end of the handshake, and one
wording of the reasons why connecting failed.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any, Protocol

from redis import exceptions
from redis.asyncio import Connection, ConnectionPool, Redis, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address, Endpoint, name_node
from aioqless.redis.error_replies import REDIS_UNAVAILABLE, SlotMigrating, SlotMoved, make_error
from aioqless.redis.resp_protocol import Reply
from aioqless.redis.server_restriction import restriction

QUERY_TIMEOUT = 1.0  # seconds, for the answer of a sentinel or a node


class Topology(Protocol):
    """Says where to connect before each attempt, and learns from redirections."""

    @property
    def address(self) -> Address:
        """The URL, parsed."""

    async def find(self) -> Endpoint:
        """Return where to connect now.

        Raises:
            redis.exceptions.ConnectionError: That is unknown now.
            AioqlessError: That will stay unknown.
        """

    async def check(self, connection: AbstractConnection) -> None:
        """Check that this is the right server.

        Raises:
            redis.exceptions.ConnectionError: It isn't, or no longer.
        """

    def handle_redirect(self, error: Exception) -> bool:
        """Note that a server said that another one must be asked.

        Returns:
            Whether the connection to this server is of no more use.

        Raises:
            AioqlessError: This kind of topology can't follow the redirection.
        """


class _TopologyConnection(AbstractConnection):
    """A connection to the server that a topology finds.

    redis-py's own `socket_timeout` stays off: it sends by `asyncio.wait_for`, which before Python
    3.12 may swallow a cancellation.

    Args:
        topology: Finds the server.
        connect_timeout: Seconds for connecting, handshake included.
        reply_timeout: Seconds for each reply that is waited for without a timeout of its own.
        name: Name of the connection in `CLIENT LIST`.
        options: Options of redis-py's connection.
    """

    def __init__(
        self,
        *,
        topology: Topology,
        connect_timeout: float | None,
        name: str | None,
        reply_timeout: float | None = None,
        **options: Any,
    ) -> None:
        self._topology = topology
        self._found: Endpoint | None = None
        self._connect_timeout = topology.address.connect_timeout or connect_timeout
        self._reply_timeout = reply_timeout
        self._name = name
        super().__init__(
            redis_connect_func=_TopologyConnection.shake_hands,  # type: ignore[arg-type]
            socket_timeout=None,
            socket_connect_timeout=self._connect_timeout,
            **options,
        )

    @property
    def server(self) -> str:
        """The server in words, for errors: its address, and the URL that led to it."""
        address = self._topology.address
        if address.kind != "server" and self._found:
            return f"Redis at {name_node(self._found)} of {address}"
        return f"Redis at {address}"

    async def connect(self) -> None:
        """Connect, unless it is connected.

        Raises:
            redis.exceptions.RedisError: It can't, with the address and the reason.
            AioqlessError: The server can't be found, or may not be used here.
        """
        restriction.check(self._topology.address)
        if self.is_connected:
            return
        try:
            async with asyncio.timeout(self._connect_timeout):
                self._found = None
                self._found = await self._topology.find()
                self._set_endpoint(self._found)
                await super().connect()  # type: ignore[no-untyped-call]
        except BaseException as error:
            self.abort()
            if isinstance(error, Exception) and not isinstance(error, AioqlessError):
                raise self._explain(error) from None
            raise

    async def shake_hands(self) -> None:
        """Authenticate, name the connection, and check the server.

        Raises:
            redis.exceptions.RedisError: The server refuses this client.
        """
        await self.on_connect()
        if self._name:
            await self.send_command(
                "CLIENT", "SETNAME", self._name.replace(" ", "_"), check_health=False
            )
            with contextlib.suppress(exceptions.ResponseError):  # a name is not worth failing for
                await self.read_response()
        await self._topology.check(self)

    async def send_packed_command(self, *words: Any, **options: Any) -> None:
        """Send a command, on a connection that may have been made before a test.

        Raises:
            AioqlessError: The server may not be used within this test.
        """
        restriction.check(self._topology.address)
        await super().send_packed_command(*words, **options)

    async def read_response(
        self, disable_decoding: bool = False, timeout: float | None = None, **options: Any
    ) -> Reply:
        """Read a reply.

        Raises:
            redis.exceptions.TimeoutError: It takes too long.
            redis.exceptions.ConnectionError: The server is no longer the one to ask.
        """
        try:
            async with asyncio.timeout(self._reply_timeout if timeout is None else None):
                return await super().read_response(disable_decoding, timeout, **options)
        except TimeoutError:
            raise exceptions.TimeoutError(f"{self.server} did not answer in time") from None
        except (exceptions.ReadOnlyError, exceptions.MovedError) as error:
            await self.disconnect()
            raise exceptions.ConnectionError(
                f"this server is no longer the primary: {error}"
            ) from None

    def detach(self, protocol: asyncio.Protocol) -> asyncio.StreamWriter:
        """Let another protocol read from the socket, and return its writer for the caller to close.

        This object is no connection afterwards.
        """
        assert self._reader is not None and self._writer is not None
        # Unread bytes would be lost; a server that says something unasked closes the connection.
        left = bytes(self._reader._buffer)  # type: ignore[attr-defined]  # noqa: SLF001  # no public way
        if left or self._reader.at_eof() or self._writer.transport.is_closing():
            self.abort()
            why = (
                left[:100].decode("utf-8", "replace").lstrip("-").strip()
                or "the server closed the connection"
            )
            raise self._explain(exceptions.ConnectionError(why))
        writer, self._reader, self._writer = self._writer, None, None
        writer.transport.set_protocol(protocol)
        return writer

    def _set_endpoint(self, endpoint: Endpoint) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        """Close the socket at once."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._reader = self._writer = None

    def _explain(self, error: Exception) -> Exception:
        """Return the error with the address and the reason in its text."""
        address, known = self._topology.address, error
        if type(error) is exceptions.ResponseError:  # redis-py has no class for it
            known = make_error(str(error))
        if isinstance(known, TimeoutError | exceptions.TimeoutError):
            seconds = address.connect_timeout  # others are a part of what the user has set
            within = "" if seconds is None else f" within {seconds:g} s"
            tls = ". If the server has no TLS, its URL begins with redis" if address.tls else ""
            return exceptions.ConnectionError(
                f"can't connect to {self.server}: no answer{within}{tls}"
            )
        away = isinstance(known, REDIS_UNAVAILABLE) and not isinstance(
            known, exceptions.AuthenticationError
        )
        if isinstance(known, exceptions.RedisError) and not away:
            code = getattr(error, "status_code", None)  # redis-py takes it off the text
            return type(known)(
                f"Redis at {address} refused this client: {f'{code} ' if code else ''}{known}"
            )
        kind = (
            type(known)
            if isinstance(known, exceptions.ConnectionError)
            else exceptions.ConnectionError
        )
        return kind(f"can't connect to {self.server}: {str(known) or type(known).__name__}")


class _Tcp(_TopologyConnection, Connection):
    def _set_endpoint(self, endpoint: Endpoint) -> None:
        assert not isinstance(endpoint, str)  # only one server may be at a socket
        self.host, self.port = endpoint

    def _connection_arguments(self) -> Any:
        """Use the TLS context that the certificates of the URL were read into.

        redis-py would read them again, and trust those of the system, too.
        """
        tls = self._topology.address.tls
        return dict(super()._connection_arguments()) | ({"ssl": tls} if tls else {})


class _Unix(_TopologyConnection, UnixDomainSocketConnection):
    def _set_endpoint(self, endpoint: Endpoint) -> None:
        self.path = str(endpoint)

    async def _connect(self) -> None:
        """Open the socket only: redis-py would shake hands here and again in `connect`."""
        self._reader, self._writer = await asyncio.open_unix_connection(self.path)


def _connection_class(
    topology: Topology, **options: Any
) -> tuple[type[_TopologyConnection], dict[str, Any]]:
    """Return the class of connections to a topology, and their options."""
    address = topology.address
    given = {
        name: address.options[name]
        for name in ("db", "socket_keepalive")
        if name in address.options
    }
    # No blind retries, and no more commands in the handshake than are needed: a user of Redis may
    # not be permitted to send them.
    options |= {
        "topology": topology,
        "protocol": 2,
        "driver_info": None,
        "retry": Retry(NoBackoff(), 0),
    }
    return _Unix if isinstance(address.endpoints[0], str) else _Tcp, given | address.login | options


async def connect(
    topology: Topology, *, timeout: float | None, name: str | None = None
) -> _TopologyConnection:
    """Return a connection to the server that a topology finds, ready for use.

    Raises:
        redis.exceptions.RedisError: It can't connect, or is refused.
        AioqlessError: The server can't be found.
    """
    kind, options = _connection_class(topology, connect_timeout=timeout, name=name)
    connection = kind(**options)
    await connection.connect()
    return connection


def make_redis(
    topology: Topology, *, connect_timeout: float, reply_timeout: float, name: str
) -> Redis:
    """Return a client of redis-py for subscriptions and for commands of an application.

    Args:
        topology: Finds the server.
        connect_timeout: Seconds for connecting, handshake included.
        reply_timeout: Seconds for each reply; subscriptions wait without a timeout.
        name: Name of the connections in `CLIENT LIST`.
    """
    kind, options = _connection_class(
        topology, connect_timeout=connect_timeout, name=name, reply_timeout=reply_timeout
    )
    return Redis.from_pool(ConnectionPool(connection_class=kind, **options))


@dataclass(frozen=True)
class Node:
    """A sentinel, or a node of a Cluster, as a topology."""

    address: Address
    endpoint: Endpoint

    async def find(self) -> Endpoint:
        """Return its address."""
        return self.endpoint

    async def check(self, connection: AbstractConnection) -> None:
        """Accept it."""

    def handle_redirect(self, error: Exception) -> bool:
        """Keep the connection if only one of the slots is elsewhere."""
        return not isinstance(error, SlotMoved | SlotMigrating)


async def query(
    endpoint: Endpoint, address: Address, login: dict[str, Any], *commands: tuple[str, ...]
) -> list[Reply]:
    """Send commands over a connection of their own and return the replies.

    Raises:
        redis.exceptions.RedisError: A reply is an error, or there is none.
    """
    connection = _Tcp(
        topology=Node(address, endpoint),
        connect_timeout=QUERY_TIMEOUT,
        reply_timeout=QUERY_TIMEOUT,
        name=None,
        protocol=2,
        driver_info=None,
        **login,
    )
    try:
        await connection.connect()
        await connection.send_packed_command(connection.pack_commands(commands))
        return [await connection.read_response() for _ in commands]
    finally:
        # a graceful close takes TLS a round trip, and leaves the socket open if the loop ends first
        connection.abort()


def not_found(address: Address, why: object) -> exceptions.ConnectionError:
    """Return the error for a server that no sentinel or node could name."""
    return exceptions.ConnectionError(f"can't find Redis by {address}: {why}")
