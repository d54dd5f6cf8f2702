"""The line between a process and its supervisor.

The process says every second how it is, in one byte. The supervisor says nothing; when it is gone,
however it went, the line ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

STARTING, READY, PAUSED = b"-", b"+", b"="
BEAT = 1.0  # seconds between two words
FIRST = 0.05  # and until it has become ready


class Line:
    """A process' end. `state` says how it is; `gone` is called, in a thread, when there is no
    supervisor any more: the loop may be blocked."""

    def __init__(
        self, descriptor: int, state: Callable[[], bytes], gone: Callable[[], None]
    ) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)  # what a handler starts must not keep the line alive
        self._state = state
        self._gone = gone

    async def run(self) -> None:
        """Tell the state until cancelled."""
        threading.Thread(target=self._listen, name="aioqless line", daemon=True).start()
        while True:
            state = self._state()
            with contextlib.suppress(
                OSError
            ):  # the supervisor is gone, or has been stopped for long
                self._socket.send(state, socket.MSG_DONTWAIT)
            await asyncio.sleep(FIRST if state == STARTING else BEAT)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while self._socket.recv(64):
                pass
        self._gone()
