"""One life of a connection to a Redis: requests out, replies in, in the order of the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, TypeAlias

import hiredis
from redis import exceptions

from aioqless.redis.error_replies import error_of

Command: TypeAlias = tuple[str | bytes | int | float, ...]

_NOTHING = object()
_MOST_AT_ONCE = 1 << 20  # bytes in one write; who comes then waits for the next turn of the loop
_LATE = 0.1  # seconds by which a timer is late when this process was held up, not Redis


class Wire(asyncio.Protocol):
    """Shares one connection that is ready for use among all callers. A reply that takes longer than
    `limit` seconds ends it.

    Owns what is to be written, who waits for a reply since when, and one timer for all of these.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._reader = hiredis.Reader(
            protocolError=exceptions.InvalidResponse, replyError=error_of, notEnoughData=_NOTHING
        )
        self._outgoing: list[bytes] = []
        self._size = 0
        self._paused = False
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._transport: asyncio.WriteTransport | None = None
        self.broken = False
        self.writable = asyncio.Event()  # cleared while the other end doesn't take what was written
        self.writable.set()
        self.gone = asyncio.Event()  # the socket is closed

    def begin(self, writer: asyncio.StreamWriter) -> None:
        """Send over this writer, whose transport tells this protocol what it reads."""
        self._writer = writer  # kept: a StreamWriter that is deleted closes its transport
        self._transport = writer.transport

    def send(self, command: Command) -> asyncio.Future[Any]:
        """Join the write of this turn of the loop; the future gets the reply, error replies as
        values."""
        packed = hiredis.pack_command(command)  # type: ignore[arg-type]
        reply: asyncio.Future[Any] = self._loop.create_future()
        if self.broken:
            reply.set_exception(exceptions.ConnectionError("the connection to Redis broke"))
            return reply
        if not self._outgoing:
            self._loop.call_soon(self._write)
        self._outgoing.append(packed)
        self._size += len(packed)
        if self._size > _MOST_AT_ONCE:
            self.writable.clear()
        self._waiting.append((reply, self._loop.time()))
        if self._timer is None and self._limit is not None:
            self._timer = self._loop.call_later(self._limit, self._look)
        return reply

    def _write(self) -> None:
        if self._transport is not None and not self.broken:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._size = 0
        if not self._paused:
            self.writable.set()

    def _look(self, *, held_up: bool = False) -> None:
        """Give up if the oldest request has waited for too long; else look again when it will
        have."""
        assert self._timer is not None and self._limit is not None
        now, due = self._loop.time(), self._timer.when()
        self._timer = None
        if not self._waiting:
            return
        if (left := self._waiting[0][1] + self._limit - now) > 0:
            self._timer = self._loop.call_later(left, self._look)
        elif now - due > _LATE and not held_up:  # the reply may be there already, and not yet read
            self._timer = self._loop.call_later(_LATE, lambda: self._look(held_up=True))
        else:
            self.close(exceptions.TimeoutError(f"Redis did not answer within {self._limit:g} s"))

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                waiting, _ = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(reply)
        except (
            exceptions.InvalidResponse,
            IndexError,
        ):  # not Redis, or out of step: nothing that comes can be trusted
            self.close()

    def pause_writing(self) -> None:
        self._paused = True
        self.writable.clear()

    def resume_writing(self) -> None:
        self._paused = False
        self.writable.set()

    def close(self, error: Exception | None = None) -> None:
        """End it at once; who waits gets this error, else a ConnectionError."""
        if self._transport is not None:
            self._transport.abort()
        self._refuse(error or exceptions.ConnectionError("the connection to Redis broke"))

    def connection_lost(self, error: Exception | None) -> None:
        self._refuse(
            exceptions.ConnectionError(
                f"the connection to Redis broke{f': {error}' if error else ''}"
            )
        )
        self.gone.set()

    def _refuse(self, error: Exception) -> None:
        self.broken, self._paused = True, False
        self.writable.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            waiting, _ = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(type(error)(*error.args))
                waiting.exception()  # its caller may be gone, or have had another's already
