"""The end of a process: it comes when it was promised, whatever handlers left behind."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable

from aioqless.log import log


class Shutdown:
    """Ends the process by `os._exit`, `seconds` after its graceful shutdown has begun, if it is
    still there: a thread that isn't a daemon, a blocked loop, a coroutine that suppresses its
    cancellation or a hanging exit handler would keep it for ever.

    Owns the thread that waits. `code` is what the process exits with; `waits` says whether there is
    a reason to wait longer."""

    def __init__(self, seconds: float, waits: Callable[[], bool]) -> None:
        self.code = 1
        self._seconds = seconds
        self._waits = waits
        self._begun: queue.SimpleQueue[None] = queue.SimpleQueue()
        threading.Thread(target=self._watch, name="aioqless shutdown", daemon=True).start()

    def begin(self) -> None:
        """The graceful shutdown begins; later calls change nothing. From any thread, and in the
        midst of a signal."""
        self._begun.put(None)

    def end(self) -> None:
        """End the process now."""
        others = [
            thread.name
            for thread in threading.enumerate()
            if not thread.daemon and thread is not threading.main_thread()
        ]
        log.warning("process.exit_forced", code=self.code, threads=others)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(self.code)

    def _watch(self) -> None:
        self._begun.get()
        time.sleep(self._seconds)
        while self._waits():
            time.sleep(0.1)
        self.end()
