"""A proxy for Redis that disturbs connections as a test requests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Self
from urllib.parse import urlsplit

PATIENCE = 0.2  # seconds for the last bytes of a connection that ends


class Proxy:
    """Passes all traffic between clients and a Redis, with the faults that are set.

    Each of these counts down: `drop` replies (the request gets through, then the connection ends),
    `cut` requests before they get through, `delay` replies by `seconds`, `tear` requests (only a
    part gets through), `split` reads of either side into small pieces that arrive one by one.
    `go_on` ends the delays before their time.
    `drop_firsts` drops the first reply to each request. The faults affect only traffic that
    contains `about`. `silence` stops the traffic of the existing connections without ending them;
    `silent` does so for new connections.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream  # a URL
        self.drop = self.cut = self.delay = self.tear = self.split = 0
        self.seconds = 0.0
        self.go_on = asyncio.Event()
        self.drop_firsts = self.silent = False
        self.about = b"EVALSHA"
        self.connections = 0
        self.dropped: set[bytes] = set()  # the requests whose first reply was dropped
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._lines: set[_Connection] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def open(self) -> None:
        """Accept clients, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection and accept no more; returns when all sockets are closed."""
        if self._server is not None:
            # asyncio loses a socket that is accepted while its server is closed: stop accepting
            # first
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            for _ in range(3):  # and serve the sockets that were accepted
                await asyncio.sleep(0)
            self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept a client.

        A task that is canceled before its first step would not close the socket.
        """
        self.connections += 1
        line = _Connection(self, reader, writer)
        line.hushed = self.silent
        self._lines.add(line)
        pump = asyncio.create_task(line.carry())
        self._pumps.add(pump)
        pump.add_done_callback(lambda _: self._ended(line, pump))

    def _ended(self, line: _Connection, pump: asyncio.Task[None]) -> None:
        line.abort()
        self._lines.discard(line)
        self._pumps.discard(pump)

    def silence(self, about: bytes = b"") -> None:
        """Stop the traffic of connections whose traffic contained `about`."""
        for line in self._lines:
            line.hushed |= about in line.said

    def said(self, about: bytes) -> int:
        """Return the number of connections whose traffic contained `about`."""
        return sum(about in line.said for line in self._lines)

    def cut_off(self, about: bytes = b"") -> None:
        """End the connections whose traffic contained `about`."""
        for line in list(self._lines):
            if about in line.said:
                line.writer.transport.abort()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.upstream)
        if parts.scheme == "unix":
            return await asyncio.open_unix_connection(parts.path)
        return await asyncio.open_connection(parts.hostname, parts.port)


class _Connection:
    """One connection."""

    def __init__(
        self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.proxy, self.reader, self.writer = proxy, reader, writer
        self.dropping = self.delaying = self.hushed = False
        self.said = b""
        self.ends = [writer]

    async def carry(self) -> None:
        with contextlib.suppress(OSError):  # there is no Redis behind the proxy
            reader, writer = await self.proxy.connect()
            self.ends.append(writer)
            ways = [
                asyncio.create_task(self._requests(writer)),
                asyncio.create_task(self._replies(reader)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                for end in self.ends:
                    end.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await asyncio.gather(
                        *ways, *(end.wait_closed() for end in self.ends), return_exceptions=True
                    )

    def abort(self) -> None:
        """Close both sockets without waiting for unsent data."""
        for end in self.ends:
            end.transport.abort()

    async def _requests(self, to: asyncio.StreamWriter) -> None:
        proxy = self.proxy
        while data := await self.reader.read(1 << 16):
            self.said += data
            if self.hushed:
                continue
            if proxy.about in data:
                if proxy.cut:
                    proxy.cut -= 1
                    return
                if proxy.tear:
                    proxy.tear -= 1
                    to.write(data[: len(data) // 2])
                    await to.drain()
                    return
                if proxy.drop:
                    proxy.drop -= 1
                    self.dropping = True
                if proxy.drop_firsts and data not in proxy.dropped:
                    proxy.dropped.add(data)
                    self.dropping = True
                if proxy.delay:
                    proxy.delay -= 1
                    self.delaying = True
            await self._pass_on(data, to)

    async def _pass_on(self, data: bytes, to: asyncio.StreamWriter) -> None:
        if not self.proxy.split:
            to.write(data)
            return
        self.proxy.split -= 1
        to.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), size := max(1, len(data) // 50)):
            to.write(data[at : at + size])
            await to.drain()
            await asyncio.sleep(0)

    async def _replies(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1 << 16):
            if self.dropping:
                return
            if self.delaying:
                self.delaying = False
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.proxy.seconds):
                        await self.proxy.go_on.wait()
            if not self.hushed:
                await self._pass_on(data, self.writer)
