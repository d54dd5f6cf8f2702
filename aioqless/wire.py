"""One life of a connection to a Redis: requests out, replies in, in the order of the requests."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Any, TypeAlias, cast

import hiredis
from redis import exceptions

Command: TypeAlias = tuple[str | bytes | int | float, ...]
Endpoint: TypeAlias = str | tuple[str, int]  # a socket's path, or a host and its port

_NOTHING = object()
_ERRORS: dict[str, type[Exception]] = {
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


class Moved(exceptions.ResponseError):
    """In a Cluster: the slot is another node's, `.endpoint`. The call was not carried out."""

    @property
    def endpoint(self) -> Endpoint | None:
        """Where that node is; None where it says that it doesn't know its name."""
        host, _, port = str(self).split(" ")[2].rpartition(":")
        return (host, int(port)) if host else None


class Moving(exceptions.ResponseError):
    """In a Cluster: the slot is on its way to another node, key by key. The call was not carried out; it would find half of the keys."""


_ERRORS |= {"MOVED": Moved, "ASK": Moving}

# Redis can't be reached, or is there and can't do anything now. Nothing is wrong with the call: it may be sent again later.
AWAY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    Moved,
    Moving,
)


def _error(text: str) -> Exception:
    kind = _ERRORS.get(text.partition(" ")[0], exceptions.ResponseError)
    return kind(text)


async def open_wire(endpoint: Endpoint, tls: ssl.SSLContext | None = None) -> Wire:
    """Connect. Raises OSError."""
    loop = asyncio.get_running_loop()
    if isinstance(endpoint, str):
        return (await loop.create_unix_connection(Wire, endpoint))[1]
    return (await loop.create_connection(Wire, *endpoint, ssl=tls))[1]


class Wire(asyncio.Protocol):
    """Owns what is to be written and who waits for a reply."""

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
