"""Reports a worker process' status to its supervisor over an inherited socket.

The process sends its status every second, in one byte. The supervisor sends nothing; when it is
gone, even killed, the socket is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

STARTING, READY, PAUSED = b"-", b"+", b"="
NUMBER_VARIABLE = "AIOQLESS_PROCESS_NUMBER"  # set by a supervisor for each process
INTERVAL = 1.0  # seconds between two reports
STARTING_INTERVAL = 0.05  # and until the process is ready


class StatusReporter:
    """Owns a process' end of the socket.

    Args:
        descriptor: the inherited socket.
        read_status: returns the status of the process.
        on_orphaned: called in a thread when the supervisor is gone: the loop may be blocked.
    """

    def __init__(
        self,
        descriptor: int,
        read_status: Callable[[], bytes],
        on_orphaned: Callable[[], None],
    ) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)  # what a handler starts must not keep it open
        self._read_status = read_status
        self._on_orphaned = on_orphaned

    async def run(self) -> None:
        """Report the status until canceled."""
        threading.Thread(
            target=self._wait_for_supervisor_end, name="aioqless status", daemon=True
        ).start()
        while True:
            status = self._read_status()
            with contextlib.suppress(OSError):  # the supervisor is gone, or was stopped for long
                self._socket.send(status, socket.MSG_DONTWAIT)
            await asyncio.sleep(STARTING_INTERVAL if status == STARTING else INTERVAL)

    def _wait_for_supervisor_end(self) -> None:
        with contextlib.suppress(OSError):
            while self._socket.recv(64):
                pass
        self._on_orphaned()
