"""redis-py's connections to wherever the server is now, for calls as for subscriptions: one limit
from the name of a host to the last word of the greeting, one way to say why a connection failed."""

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
from aioqless.redis.address import Address, Endpoint
from aioqless.redis.error_replies import AWAY, error_of

PATIENCE = 1.0  # for the answer of a sentinel or a node, in seconds


class Target(Protocol):
    """What is asked before each attempt to connect, and once connected."""

    @property
    def address(self) -> Address: ...

    async def find(self) -> Endpoint:
        """Return where to connect now. Raises redis-py's ConnectionError when that is unknown,
        AioqlessError when it will stay so."""
        ...

    async def check(self, connection: AbstractConnection) -> None:
        """Raises redis-py's ConnectionError when this is no longer the server that was looked
        for."""
        ...


class _Aimed(AbstractConnection):
    """A connection that asks where to connect. `limit` is for how many seconds it may do so,
    greeting included, `reply` for how many a reply may take that is waited for without a limit of
    its own; a name is what Redis knows it by.

    redis-py's own `socket_timeout` stays off: it sends by `asyncio.wait_for`, which before Python
    3.12 may swallow a cancellation."""

    def __init__(
        self,
        *,
        target: Target,
        limit: float | None,
        name: str | None,
        reply: float | None = None,
        **options: Any,
    ) -> None:
        self._target = target
        self._limit = target.address.connect_timeout or limit
        self._reply = reply
        self._name = name
        super().__init__(
            redis_connect_func=_greet,
            socket_timeout=None,
            socket_connect_timeout=self._limit,
            **options,
        )

    async def connect(self) -> None:
        if self.is_connected:
            return
        try:
            async with asyncio.timeout(self._limit):
                self._aim(await self._target.find())
                await super().connect()  # type: ignore[no-untyped-call]
        except BaseException as error:
            self.abort()
            if isinstance(error, Exception) and not isinstance(error, AioqlessError):
                raise self._explained(error) from None
            raise

    async def greet(self) -> None:
        """Say who comes. Raises what the server refuses it with."""
        await self.on_connect()
        if self._name:
            await self.send_command(
                "CLIENT", "SETNAME", self._name.replace(" ", "_"), check_health=False
            )
            with contextlib.suppress(exceptions.ResponseError):  # a name is not worth failing for
                await self.read_response()
        await self._target.check(self)

    async def read_response(
        self, disable_decoding: bool = False, timeout: float | None = None, **options: Any
    ) -> Any:
        try:
            async with asyncio.timeout(self._reply if timeout is None else None):
                return await super().read_response(disable_decoding, timeout, **options)
        except TimeoutError:
            raise exceptions.TimeoutError(
                f"Redis did not answer within {self._reply:g} s"
            ) from None
        except (exceptions.ReadOnlyError, exceptions.MovedError) as error:
            await self.disconnect()
            raise exceptions.ConnectionError(
                f"the server isn't the one to ask any more: {error}"
            ) from None

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.StreamWriter:
        """Let another protocol read from now on; this is no connection any more, and the writer the
        caller's to close."""
        assert self._reader is not None and self._writer is not None
        left = bytes(self._reader._buffer)  # type: ignore[attr-defined]  # nothing was asked that isn't answered
        if left or self._reader.at_eof() or self._writer.transport.is_closing():
            self.abort()
            why = (
                left[:100].decode("utf-8", "replace").lstrip("-").strip()
                or "the server closed the connection"
            )
            raise self._explained(exceptions.ConnectionError(why))
        writer, self._reader, self._writer = self._writer, None, None
        writer.transport.set_protocol(protocol)
        return writer

    def _aim(self, endpoint: Endpoint) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        """Close the socket at once."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._reader = self._writer = None

    def _explained(self, error: Exception) -> Exception:
        """The same, with the address and whatever reason there is."""
        address, known = self._target.address, _known(error)
        if isinstance(known, TimeoutError | exceptions.TimeoutError):
            within = "" if self._limit is None else f" within {self._limit:g} s"
            tls = ". If the server has no TLS, its URL begins with redis" if address.tls else ""
            return exceptions.ConnectionError(
                f"can't connect to Redis at {address}: no answer{within}{tls}"
            )
        away = isinstance(known, AWAY) and not isinstance(known, exceptions.AuthenticationError)
        if isinstance(known, exceptions.RedisError) and not away:
            code = getattr(error, "status_code", None)  # redis-py takes it off the text
            return type(known)(
                f"Redis at {address} refused this client: {f'{code} ' if code else ''}{known}"
            )
        kind = type(known) if away else exceptions.ConnectionError
        return kind(f"can't connect to Redis at {address}: {str(known) or type(known).__name__}")


class _Tcp(_Aimed, Connection):
    def _aim(self, endpoint: Endpoint) -> None:
        assert not isinstance(endpoint, str)  # only one server may be at a socket
        self.host, self.port = endpoint

    def _connection_arguments(self) -> Any:
        """TLS by the context that the URL's certificates were read into: redis-py's would read them
        again, and trust the system's too."""
        tls = self._target.address.tls
        return dict(super()._connection_arguments()) | ({"ssl": tls} if tls else {})


class _Unix(_Aimed, UnixDomainSocketConnection):
    def _aim(self, endpoint: Endpoint) -> None:
        self.path = str(endpoint)

    async def _connect(self) -> None:
        """As redis-py does it, but it greets here and again in `connect`."""
        self._reader, self._writer = await asyncio.open_unix_connection(self.path)


async def _greet(connection: AbstractConnection) -> None:
    assert isinstance(connection, _Aimed)
    await connection.greet()


def _known(error: Exception) -> Exception:
    """redis-py has no exception for some replies."""
    return error_of(str(error)) if type(error) is exceptions.ResponseError else error


def _kind(target: Target, **options: Any) -> tuple[type[_Aimed], dict[str, Any]]:
    """The class of a connection, and what it is made with."""
    address = target.address
    given = {
        name: address.options[name]
        for name in ("db", "socket_keepalive")
        if name in address.options
    }
    # No blind retries, and no more words in the greeting than are needed: a user of Redis may not
    # be allowed to say them.
    options |= {
        "target": target,
        "protocol": 2,
        "driver_info": None,
        "retry": Retry(NoBackoff(), 0),
    }
    return _Unix if isinstance(address.endpoints[0], str) else _Tcp, given | address.login | options


async def connected(target: Target, *, limit: float | None, name: str | None = None) -> _Aimed:
    """A connection to the server that is looked for, ready for use. Raises redis-py's errors, and
    AioqlessError as `find` does."""
    kind, options = _kind(target, limit=limit, name=name)
    connection = kind(**options)
    await connection.connect()
    return connection


def redis_at(target: Target, *, limit: float, timeout: float, name: str) -> Redis:
    """For subscriptions, which connect within `limit` seconds and then wait for as long as nothing
    happens, and for whatever else somebody asks, where a reply may take `timeout` seconds."""
    kind, options = _kind(target, limit=limit, name=name, reply=timeout)
    return Redis.from_pool(ConnectionPool(connection_class=kind, **options))


@dataclass(frozen=True)
class _Node:
    """A sentinel, or any node of a Cluster."""

    address: Address
    endpoint: Endpoint

    async def find(self) -> Endpoint:
        return self.endpoint

    async def check(self, connection: AbstractConnection) -> None:
        pass


async def asked(
    endpoint: Endpoint, address: Address, login: dict[str, Any], *questions: tuple[str, ...]
) -> list[Any]:
    """The answers to questions on a connection of its own. Raises redis-py's errors."""
    connection = _Tcp(
        target=_Node(address, endpoint),
        limit=PATIENCE,
        reply=PATIENCE,
        name=None,
        protocol=2,
        driver_info=None,
        **login,
    )
    try:
        await connection.connect()
        await connection.send_packed_command(connection.pack_commands(questions))
        return [await connection.read_response() for _ in questions]
    finally:
        # a graceful close takes TLS a round trip, and leaves the socket open if the loop ends first
        connection.abort()


def nobody(address: Address, why: object) -> exceptions.ConnectionError:
    """The error for a server that none of the sentinels or nodes could name."""
    return exceptions.ConnectionError(f"can't find Redis by {address}: {why}")
