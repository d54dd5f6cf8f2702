"""Requests and replies on a connected socket, matched in order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, TypeAlias

import hiredis
from redis import exceptions

from aioqless.redis.error_replies import make_error

Word: TypeAlias = str | bytes | int | float
RedisCommand: TypeAlias = tuple[Word, ...]
Reply: TypeAlias = Any  # bytes, int, None, or a list of these and of errors

_NO_REPLY = object()
_MAX_WRITE = 1 << 20  # bytes; later callers wait for the next event-loop iteration
OTHER_LOOP = (
    "the client was opened on another event loop: open one for each loop (one per thread), "
    "within `async with`"
)
_LATE = 0.1  # seconds by which a timer is late if the event loop was blocked


class RespProtocol(asyncio.Protocol):
    """Shares one connected socket among all callers.

    Owns the outgoing commands, the pending replies, and one timer for all of these.

    Args:
        timeout: Seconds after which a missing reply closes the connection.
        server: The server in words, for errors.
    """

    def __init__(self, timeout: float | None = None, server: str = "Redis") -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._reader = hiredis.Reader(
            protocolError=exceptions.InvalidResponse, replyError=make_error, notEnoughData=_NO_REPLY
        )
        self._outgoing: list[bytes] = []
        self._size = 0
        self._paused = False
        self._waiting: deque[tuple[asyncio.Future[Reply], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._transport: asyncio.WriteTransport | None = None
        self.broken = False
        self.writable = asyncio.Event()  # cleared while the server doesn't read
        self.writable.set()
        self.closed = asyncio.Event()

    def attach(self, writer: asyncio.StreamWriter) -> None:
        """Send over a writer whose transport passes what it reads to this protocol."""
        self._writer = writer  # kept: a StreamWriter that is deleted closes its transport
        self._transport = writer.transport

    def send(self, command: RedisCommand, *, at_once: bool = True) -> asyncio.Future[Reply]:
        """Send a command.

        Args:
            command: The command.
            at_once: Whether it goes out at once if no reply is pending; otherwise it waits for the
                other commands of this event-loop iteration.

        Returns:
            A future of the reply; error replies are results, too.

        Raises:
            RuntimeError: It is called on another event loop than that of the connection.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(OTHER_LOOP)
        packed = hiredis.pack_command(command)  # type: ignore[arg-type]
        reply: asyncio.Future[Reply] = self._loop.create_future()
        if self.broken:
            reply.set_exception(self._make_error())
            return reply
        if at_once and self._transport is not None and not self._waiting:
            self._transport.write(packed)
        else:
            self._gather(packed)
        self._waiting.append((reply, self._loop.time()))
        if self._timer is None and self._timeout is not None:
            self._timer = self._loop.call_later(self._timeout, self._check_timeout)
        return reply

    def _gather(self, packed: bytes) -> None:
        if not self._outgoing:
            self._loop.call_soon(self._write)
        self._outgoing.append(packed)
        self._size += len(packed)
        if self._size > _MAX_WRITE:
            self.writable.clear()

    def _write(self) -> None:
        if self._transport is not None and not self.broken:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        self._size = 0
        if not self._paused:
            self.writable.set()

    def _check_timeout(self, *, delayed: bool = False) -> None:
        """Close if the oldest request has waited for too long; else check again when it will."""
        assert self._timer is not None and self._timeout is not None
        now, due = self._loop.time(), self._timer.when()
        self._timer = None
        if not self._waiting:
            return
        if (left := self._waiting[0][1] + self._timeout - now) > 0:
            self._timer = self._loop.call_later(left, self._check_timeout)
        elif now - due > _LATE and not delayed:  # the reply may have arrived and not be read yet
            self._timer = self._loop.call_later(_LATE, lambda: self._check_timeout(delayed=True))
        else:
            self.close(exceptions.TimeoutError(f"{self._server} did not answer in time"))

    def data_received(self, data: bytes) -> None:
        """Hand replies to their callers."""
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NO_REPLY:
                waiting, _ = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(reply)
        except (exceptions.InvalidResponse, IndexError):
            self.close()  # not Redis, or out of step: nothing that follows can be trusted

    def pause_writing(self) -> None:
        """Let callers wait."""
        self._paused = True
        self.writable.clear()

    def resume_writing(self) -> None:
        """Let callers continue."""
        self._paused = False
        self.writable.set()

    def close(self, error: Exception | None = None) -> None:
        """Close at once; pending calls raise the error, else a ConnectionError."""
        if self._transport is not None:
            self._transport.abort()
        self._fail_pending(error or self._make_error())

    def connection_lost(self, error: Exception | None) -> None:
        """Fail pending calls."""
        self._fail_pending(self._make_error(error))
        self.closed.set()

    def _make_error(self, why: Exception | None = None) -> Exception:
        cause = f": {why}" if why else ""
        return exceptions.ConnectionError(f"the connection to {self._server} broke{cause}")

    def _fail_pending(self, error: Exception) -> None:
        self.broken, self._paused = True, False
        self.writable.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            waiting, _ = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(type(error)(*error.args))
                waiting.exception()  # its caller may be gone, or have raised another one's
