"""Ends a process in time after its graceful shutdown has started."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable

from aioqless.runtime.log import log


class ShutdownTimer:
    """Ends the process by `os._exit` some seconds after the start of its graceful shutdown.

    A non-daemon thread, a blocked loop, a coroutine that suppresses its cancellation or a hanging
    exit handler would keep the process alive forever.

    Args:
        seconds: how long the shutdown may take.
        may_wait: returns whether there is a reason to wait longer.
        longer: for how many seconds.

    Attributes:
        exit_code: the exit code of the process.
    """

    def __init__(self, seconds: float, may_wait: Callable[[], bool], longer: float) -> None:
        self.exit_code = 1
        self._seconds = seconds
        self._may_wait = may_wait
        self._longer = longer
        self._started: queue.SimpleQueue[None] = queue.SimpleQueue()
        threading.Thread(target=self._watch, name="aioqless shutdown", daemon=True).start()

    def start(self) -> None:
        """Start the timer unless it runs; callable from any thread and in signal handlers."""
        self._started.put(None)

    def exit_now(self) -> None:
        """End the process immediately."""
        others = [
            thread.name
            for thread in threading.enumerate()
            if not thread.daemon and thread is not threading.main_thread()
        ]
        log.warning("process.exit_forced", code=self.exit_code, threads=others)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(self.exit_code)

    def _watch(self) -> None:
        self._started.get()
        time.sleep(self._seconds)
        if self._may_wait():
            time.sleep(self._longer)
        self.exit_now()
