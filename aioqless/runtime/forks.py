"""Forks of a handler that return from it.

Such a process would continue as a second worker on the same sockets, whose replies it would steal,
and on the same epoll, from which it would remove them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from typing import NoReturn
from weakref import WeakValueDictionary

from aioqless.runtime.log import log

_loops: WeakValueDictionary[int, asyncio.AbstractEventLoop] = WeakValueDictionary()  # by thread


def guard_loop() -> None:
    """Let processes that are forked on the running loop exit when they come back to it."""
    _loops[threading.get_ident()] = asyncio.get_running_loop()


def exit_fork() -> NoReturn:
    """Log that this process is a fork of a handler, and exit at once."""
    why = "a handler forked this process and returned in it: end it by os._exit there"
    log.error("job.fork_ended", pid=os.getpid(), why=why)
    os._exit(1)


def _schedule_exit() -> None:
    loop = _loops.get(threading.get_ident())
    if loop is not None and loop.is_running():
        loop.call_soon(exit_fork)
        # Before anything else that is ready. uvloop runs the rest of its iteration first.
        ready: deque[object] = getattr(loop, "_ready", deque())
        ready.rotate()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_schedule_exit)
