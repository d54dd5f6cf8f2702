"""Whether the worker's loop answers, and whose code keeps it from that."""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from structlog.contextvars import get_contextvars

from aioqless.log import log
from aioqless.worker.run import Run

LATE = 0.5  # seconds without an answer, from which on a loop counts as blocked

_FOLDERS = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    Path(__file__).parents[1],
)
_LIBRARIES = ("<frozen", *(f"{folder}{os.sep}" for folder in _FOLDERS))


class Pulse:
    """Asks the worker's loop for a sign of life, from another thread. Owns since when it waits for
    one, and what it has said of that; the loop leaves the sign."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._asked = 0.0
        self._answered = True
        self._said = 0.0

    def watch(self) -> None:
        """From now on the loop that this is called on is the one to ask."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def feel(self, running: Iterable[Run]) -> float:
        """For how many seconds the loop has been blocked, 0 when it isn't. Says in the log what
        blocks it, again when that has doubled."""
        assert self._loop is not None
        now = time.monotonic()
        blocked = now - self._asked
        if not self._answered:
            if blocked < LATE:
                return 0
            if blocked > 2 * self._said:
                self._said = blocked
                log.warning("worker.loop_blocked", seconds=round(blocked, 3), **self.at(running))
            return blocked
        if self._said:
            log.info("worker.loop_resumed")
            self._said = 0
        self._asked, self._answered = now, False
        self._loop.call_soon_threadsafe(self._answer)
        return 0

    def _answer(self) -> None:
        self._answered = True

    def at(self, running: Iterable[Run]) -> dict[str, Any]:
        """Which run's code the loop is in, as far as that can be known, and where; else the klasses
        of all that run."""
        task = asyncio.current_task(self._loop)
        where = _where(sys._current_frames().get(self._thread))
        for run in running:
            if task is not None and run.task is task:
                return {**run.who, "where": where}
        if told := _told_by(task):
            return {**told, "where": where}
        return {"running": sorted({run.job.klass for run in running}), "where": where}


def _told_by(task: asyncio.Task[Any] | None) -> dict[str, Any]:
    """What a task that a handler started says of the run it belongs to. From Python 3.12 on;
    before, nobody can ask a task."""
    if task is None or not hasattr(task, "get_context"):
        return {}
    known = task.get_context().copy().run(get_contextvars)
    return {name: known[name] for name in ("jid", "klass", "queue") if name in known}


def _where(frame: FrameType | None) -> str | None:
    """`file:line function` of the innermost frame that is neither a library's nor ours; of the very
    innermost if there is none such."""
    innermost = frame
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    found = frame or innermost
    return (
        f"{found.f_code.co_filename}:{found.f_lineno} {found.f_code.co_qualname}" if found else None
    )
