"""Signal handlers of a process of aioqless, which children that it forks don't inherit."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_handled: set[signal.Signals] = set()
_held: set[int] = set()  # signals that came before their handlers were set
_former = threading.local()


def handle(number: signal.Signals, act: Callable[[int, FrameType | None], object]) -> None:
    """Call a function for a signal in this process, but not in children that it forks."""
    if not _handled and hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_block, after_in_parent=_unblock, after_in_child=_restore_defaults
        )
    _handled.add(number)
    signal.signal(number, act)
    if number in _held:
        _held.discard(number)
        signal.raise_signal(number)


def prepare_worker() -> None:
    """Prepare the process of a worker for signals, before it imports what takes time.

    What it may have inherited is undone: blocked signals, by which nothing could stop it, and an
    ignored SIGCHLD, by which the kernel forgets the exit codes of its children. Signals that a
    worker handles are held back: each is delivered when its handler is set.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"):
        if number := getattr(signal, name, None):
            handle(number, lambda got, _: _held.add(got))


def _block() -> None:
    """Block signals until the child has its own handlers: earlier ones would be lost."""
    _former.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handled)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _former.mask)


def _restore_defaults() -> None:
    signal.set_wakeup_fd(-1)  # it would wake the event loop of the parent
    for number in _handled:
        signal.signal(
            number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        )
    _unblock()
