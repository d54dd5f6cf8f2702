"""Signal handlers of a worker process, and of commands that run until they are stopped.

A handler that blocks the event loop doesn't delay a second SIGTERM or a stack dump.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Callable
from functools import partial

from aioqless.cli.shutdown_timer import ShutdownTimer
from aioqless.runtime import os_signals
from aioqless.runtime.log import log
from aioqless.worker import AnyWorker

TERMINATING = ("SIGTERM", "SIGINT")


def on_signals(names: tuple[str, ...], act: Callable[[signal.Signals], object]) -> None:
    """Call `act` for each of these signals, interrupting the main thread.

    Windows has SIGTERM and SIGINT only.
    """
    for name in names:
        if number := getattr(signal, name, None):
            os_signals.handle(number, lambda got, _: act(signal.Signals(got)))


def loop_caller() -> Callable[[Callable[[], object]], object]:
    """Return a function that schedules a call on the running loop from within a signal handler.

    It keeps the current context: the log lines aren't those of the job that was interrupted.
    """
    return partial(
        asyncio.get_running_loop().call_soon_threadsafe, context=contextvars.copy_context()
    )


def stop_on_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on the loop on SIGTERM and SIGINT."""
    call = loop_caller()
    on_signals(TERMINATING, lambda _: call(stop))


def install_worker_handlers(worker: AnyWorker, timer: ShutdownTimer, *, supervised: bool) -> None:
    """Install the signal handlers of a worker process.

    SIGTERM, SIGINT: graceful shutdown; at the second one, exit immediately: other workers run its
    jobs after `worker-timeout`. Under a supervisor only the supervisor does that, since the second
    signal may be the first one, passed on.
    SIGUSR1: dump the stacks of running jobs. SIGUSR2: pause. SIGCONT: resume. SIGHUP: log that only
    a supervisor restarts processes.
    """
    loop, call, stopping = asyncio.get_running_loop(), loop_caller(), False

    def stop(number: signal.Signals) -> None:
        nonlocal stopping
        if stopping and not supervised:
            os._exit(128 + number)
        stopping = True
        timer.start()
        call(worker.stop)

    def dump_stacks(_: signal.Signals) -> None:
        # in a thread: the signal may have interrupted the log
        threading.Thread(target=worker.dump_stacks, args=[loop]).start()

    def ignore_reload() -> None:
        log.warning("worker.reload_ignored", why="SIGHUP is for `-w`")

    on_signals(TERMINATING, stop)
    on_signals(("SIGUSR1",), dump_stacks)
    on_signals(("SIGUSR2",), lambda _: call(worker.pause))
    on_signals(("SIGCONT",), lambda _: call(worker.resume))
    on_signals(("SIGHUP",), lambda _: call(ignore_reload))
