"""Where a run is now, for somebody who wonders what a worker does. Looked at from a thread of its
own: the loop may be blocked."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from traceback import StackSummary
from types import FrameType
from typing import Any

from aioqless.worker.run import Run

WORKER = str(Path(__file__).parent)
PACKAGE = str(Path(__file__).parents[1])


def stack_of(run: Run, loop: asyncio.AbstractEventLoop) -> str:
    """The lines that a run has come to, the innermost last: of a coroutine where it waits, of a
    thread where it is."""
    frames = list(_frames(run, loop))
    start = next(
        (index for index, frame in enumerate(frames) if _file(frame).startswith(WORKER)), 0
    )
    while start < len(frames) - 1 and _file(frames[start]).startswith(PACKAGE):
        start += 1
    return "".join(
        StackSummary.extract((frame, frame.f_lineno) for frame in frames[start:]).format()
    )


def _frames(run: Run, loop: asyncio.AbstractEventLoop) -> Iterable[FrameType]:
    """The outermost first."""
    if run.task is None:
        return []
    threads = sys._current_frames()
    main = threads.pop(threading.main_thread().ident or 0)
    threads.pop(threading.get_ident(), None)
    if asyncio.current_task(loop) is run.task:  # it holds the loop
        return _callers(main)
    for frame in threads.values():
        stack = _callers(frame)
        if any(value is run.job for each in stack for value in each.f_locals.values()):
            return stack
    return _awaited(run.task.get_coro())


def _callers(frame: FrameType | None) -> list[FrameType]:
    stack = []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    return stack[::-1]


def _awaited(waiting: Any) -> Iterator[FrameType]:
    """A coroutine, what it awaits, what that awaits, and so on; a task knows the first only."""
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            yield frame
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename
