"""One connection to Redis that all callers share.

What they send within a turn of the loop goes out in one write, and replies are handed out in the order of the requests. Sharing is safe
since nothing sent here blocks in Redis or changes the connection's state. A caller that is cancelled leaves its reply to be thrown away.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import urlsplit

import hiredis
from redis import exceptions
from redis.asyncio.connection import parse_url

Command = tuple[str | bytes | int | float, ...]

_NOTHING = object()
_ERRORS = {
    "NOSCRIPT": exceptions.NoScriptError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": exceptions.ReadOnlyError,
    "LOADING": exceptions.BusyLoadingError,
    "MASTERDOWN": exceptions.MasterDownError,
    "CLUSTERDOWN": exceptions.ClusterDownError,
    "TRYAGAIN": exceptions.TryAgainError,
    **dict.fromkeys(("BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED"), exceptions.BusyLoadingError),
    "NOAUTH": exceptions.AuthenticationError,
    "WRONGPASS": exceptions.AuthenticationError,
    "NOPERM": exceptions.NoPermissionError,
}

# Redis can't be reached, or is there and can't do anything now. Nothing is wrong with the call: it may be sent again later.
AWAY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)


def _error(text: str) -> Exception:
    kind: type[Exception] = _ERRORS.get(text.partition(" ")[0], exceptions.ResponseError)
    return kind(text)


class Connection:
    """Connects when first used, and again after it broke. Calls under way when it breaks raise redis-py's ConnectionError: whether they
    were carried out is unknown. It ends, too, when the server has become a replica: the next one may lead to the server that took over.

    A reply that takes longer than `timeout` seconds raises TimeoutError and ends the connection, for what it holds up. `before` is called
    before each attempt to connect.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float | None = None,
        name: str | None = None,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.url = url
        self._options: dict[str, Any] = dict(parse_url(url))
        self._timeout = timeout
        self._name = name
        self._before = before
        self._wire: _Wire | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def execute(self, *command: str | bytes | int | float) -> Any:
        """Send one command and return its reply: bytes, int, None, or a list of these and of errors. Raises an error reply."""
        return (await self.execute_many([command]))[0]

    async def execute_many(self, commands: list[Command], *, raise_errors: bool = True) -> list[Any]:
        """Send commands in one write and return their replies; with `raise_errors` off, error replies are among them."""
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
            if isinstance(answer, exceptions.ReadOnlyError):
                wire.close()
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

    async def _connected(self) -> _Wire:
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
                    raise exceptions.ConnectionError(f"can't connect to Redis at {shown(self.url)}: {error or 'no answer'}") from None
            return self._wire

    async def _connect(self) -> _Wire:
        loop = asyncio.get_running_loop()
        options = self._options
        if path := options.get("path"):
            _, wire = await loop.create_unix_connection(_Wire, path)
        else:
            _, wire = await loop.create_connection(
                _Wire, options.get("host", "localhost"), options.get("port", 6379), ssl=_tls(self.url, options)
            )
        try:
            await self._greet(wire)
        except BaseException:
            wire.close()
            raise
        return wire

    async def _greet(self, wire: _Wire) -> None:
        options = self._options
        greetings: list[Command] = []
        if password := options.get("password"):
            user = options.get("username")
            greetings.append(("AUTH", user, password) if user else ("AUTH", password))
        if db := options.get("db"):
            greetings.append(("SELECT", db))
        if self._name:
            greetings.append(("CLIENT", "SETNAME", self._name.replace(" ", "_")))
        for greeting, reply in [(greeting, wire.send(greeting)) for greeting in greetings]:
            answer = await reply
            # A name is not worth failing for, unless what is wrong is that nobody may do anything.
            if isinstance(answer, Exception) and (greeting[0] != "CLIENT" or isinstance(answer, AWAY)):
                raise answer


class _Wire(asyncio.Protocol):
    """One life of the connection. Owns what is to be written and who waits for a reply."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(protocolError=exceptions.InvalidResponse, replyError=_error, notEnoughData=_NOTHING)
        self._outgoing: list[bytes] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._transport: asyncio.Transport | None = None
        self.broken = False
        self.gone = asyncio.Event()  # the socket is closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, command: Command) -> asyncio.Future[Any]:
        """Join the write of this turn of the loop; the future gets the reply, error replies as values."""
        reply: asyncio.Future[Any] = self._loop.create_future()
        if self.broken:
            reply.set_exception(exceptions.ConnectionError("the connection to Redis broke"))
            return reply
        if not self._outgoing:
            self._loop.call_soon(self._write)
        self._outgoing.append(hiredis.pack_command(command))  # type: ignore[arg-type]
        self._waiting.append(reply)
        return reply

    def _write(self) -> None:
        if self._outgoing and self._transport is not None and not self.broken:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(reply)
        except (exceptions.InvalidResponse, IndexError):  # not Redis, or out of step: nothing that comes can be trusted
            self.close()

    def close(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()
        self._refuse(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._refuse(error)
        self.gone.set()

    def _refuse(self, error: Exception | None) -> None:
        self.broken = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(exceptions.ConnectionError(f"the connection to Redis broke{f': {error}' if error else ''}"))
                waiting.exception()  # its caller may be gone, or have had another's already


def _tls(url: str, options: dict[str, Any]) -> ssl.SSLContext | None:
    if urlsplit(url).scheme != "rediss":
        return None
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"), capath=options.get("ssl_ca_path"))
    if certificate := options.get("ssl_certfile"):
        context.load_cert_chain(certificate, options.get("ssl_keyfile"))
    if options.get("ssl_check_hostname") is False or options.get("ssl_cert_reqs") in ("none", "optional"):
        context.check_hostname = False
    if options.get("ssl_cert_reqs") == "none":
        context.verify_mode = ssl.CERT_NONE
    return context


def shown(url: str) -> str:
    """A URL without its password."""
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":***@") if parts.password else url
