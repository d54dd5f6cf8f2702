"""The line between a process and its supervisor.

The process says every second how it is, in one byte. The supervisor says nothing; when it is gone, however it went, the line ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

STARTING, READY, PAUSED = b"-", b"+", b"="
BEAT = 1.0  # seconds between two words
FIRST = 0.05  # and until it has become ready


class Line:
    """A process' end. `state` says how it is; `gone` is called when there is no supervisor any more."""

    def __init__(self, descriptor: int, state: Callable[[], bytes], gone: Callable[[], None]) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)  # what a handler starts must not keep the line alive
        self._state = state
        self._gone = gone

    async def run(self) -> None:
        """Talk until cancelled, or until nobody listens."""
        reader, writer = await asyncio.open_unix_connection(sock=self._socket)
        beating = asyncio.create_task(self._beat(writer))
        try:
            with contextlib.suppress(OSError):
                await reader.read()
            self._gone()
        finally:
            beating.cancel()
            writer.close()

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        while True:
            state = self._state()
            writer.write(state)
            await asyncio.sleep(FIRST if state == STARTING else BEAT)
