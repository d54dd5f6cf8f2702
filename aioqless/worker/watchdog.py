"""Watch for a blocked event loop, and find the lines that a run has come to.

All of it works from a thread other than the loop's, which may be blocked.
"""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from traceback import StackSummary, walk_stack
from types import FrameType

from structlog.contextvars import get_contextvars

from aioqless.runtime.log import log
from aioqless.worker.running_jobs import Run

LATE = 0.5  # seconds without an answer, from which on a loop counts as blocked

_WORKER = str(Path(__file__).parent)
_PACKAGE = str(Path(__file__).parents[1])
_FOLDERS = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    _PACKAGE,
)
_LIBRARIES = ("<frozen", *(f"{folder}{os.sep}" for folder in _FOLDERS))


class LoopWatchdog:
    """Pings the worker's loop from another thread, and logs when it does not answer.

    The loop sets `_answered`; everything else is the other thread's.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._pinged = 0.0
        self._answered = True
        self._logged = 0.0  # the longest duration that was logged of the present block

    def watch(self) -> None:
        """Watch the running loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def ping(self, running: Iterable[Run]) -> float:
        """Ping the loop, and log what blocks it, again when the duration has doubled.

        Returns:
            For how many seconds the loop has been blocked; 0 when it is not.
        """
        assert self._loop is not None
        now = time.monotonic()
        blocked = now - self._pinged
        if not self._answered:
            if blocked < LATE:
                return 0
            if blocked > 2 * self._logged:
                self._logged = blocked
                fields = self.culprit(running)
                log.warning("worker.loop_blocked", seconds=round(blocked, 3), **fields)
            return blocked
        if self._logged:
            log.info("worker.loop_resumed")
            self._logged = 0
        self._pinged, self._answered = now, False
        self._loop.call_soon_threadsafe(self._answer)
        return 0

    def _answer(self) -> None:
        self._answered = True

    def culprit(self, running: Iterable[Run]) -> dict[str, object]:
        """Return log fields that say which run's code the loop executes, and where.

        If that can't be found out, they have the klasses of all that run.
        """
        task = asyncio.current_task(self._loop)
        where = _location(sys._current_frames().get(self._thread))  # noqa: SLF001 - the only way
        for run in running:
            if task is not None and task in (run.task, run.bulk and run.bulk.task):
                return {**run.log_fields, "where": where}
        if bound := _bound_fields(task):
            return {**bound, "where": where}
        return {"running": sorted({run.job.klass for run in running}), "where": where}


def _bound_fields(task: asyncio.Task[object] | None) -> dict[str, object]:
    """Return the log fields of the run that started a task; before Python 3.12 there are none."""
    if task is None or not hasattr(task, "get_context"):
        return {}
    bound = task.get_context().copy().run(get_contextvars)
    return {name: bound[name] for name in ("jid", "klass", "queue") if name in bound}


def _location(frame: FrameType | None) -> str | None:
    """Return `file:line function` of the innermost frame of the application's own code.

    If there is none, the innermost frame of all.
    """
    innermost = frame
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    found = frame or innermost
    if found is None:
        return None
    return f"{found.f_code.co_filename}:{found.f_lineno} {found.f_code.co_qualname}"


def stack_of(run: Run, loop: asyncio.AbstractEventLoop) -> str:
    """Format the stack of a run, the innermost frame last.

    For a coroutine it ends where it waits, for a thread where it is.
    """
    frames = list(_frames(run, loop))
    start = next(
        (index for index, frame in enumerate(frames) if _file(frame).startswith(_WORKER)), 0
    )
    while start < len(frames) - 1 and _file(frames[start]).startswith(_PACKAGE):
        start += 1
    return "".join(
        StackSummary.extract((frame, frame.f_lineno) for frame in frames[start:]).format()
    )


def _frames(run: Run, loop: asyncio.AbstractEventLoop) -> Iterable[FrameType]:
    """Return the frames of a run, the outermost first."""
    task, jobs = (run.bulk.task, run.bulk.jobs) if run.bulk else (run.task, None)
    if task is None:
        return []
    threads = sys._current_frames()  # noqa: SLF001 - the only way
    main = threads.pop(threading.main_thread().ident or 0)
    threads.pop(threading.get_ident(), None)
    if asyncio.current_task(loop) is task:  # the loop executes it now
        return _callers(main)
    for frame in threads.values():
        stack = _callers(frame)
        if any(value is (jobs or run.job) for each in stack for value in each.f_locals.values()):
            return stack
    return _awaited(task.get_coro())


def _callers(frame: FrameType) -> list[FrameType]:
    return [each for each, _ in walk_stack(frame)][::-1]


def _awaited(waiting: object) -> Iterator[FrameType]:
    """Yield the frames of a coroutine, of what it awaits, and so on; a task knows the first."""
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            yield frame
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename
