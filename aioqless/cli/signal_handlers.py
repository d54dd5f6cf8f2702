"""What each signal does. A handler that blocks the loop doesn't hold up a second SIGTERM, nor a
look at where it is."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Callable
from functools import partial

from aioqless import signals
from aioqless.cli.shutdown import Shutdown
from aioqless.contrib.supervisor import Supervisor
from aioqless.log import log
from aioqless.worker import Worker

DEADLY = ("SIGTERM", "SIGINT")


def on(names: tuple[str, ...], act: Callable[[signal.Signals], object]) -> None:
    """Call `act` when one of these signals comes, in the midst of whatever runs on the main thread.
    Windows has SIGTERM and SIGINT only."""
    for name in names:
        if number := getattr(signal, name, None):
            signals.handle(number, lambda got, _: act(signal.Signals(got)))


def soon() -> Callable[[Callable[[], object]], object]:
    """What lets the loop call something, from within a signal; its log lines aren't those of the
    job that was interrupted."""
    return partial(
        asyncio.get_running_loop().call_soon_threadsafe, context=contextvars.copy_context()
    )


def stop_when_told(stop: Callable[[], object]) -> None:
    """SIGTERM, SIGINT: come to an end."""
    call = soon()
    on(DEADLY, lambda _: call(stop))


def obeyed_by_worker(worker: Worker, shutdown: Shutdown, *, supervised: bool) -> None:
    """SIGTERM, SIGINT: drain, and at the second end at once: what it held runs elsewhere when its
    locks expire. Under a supervisor it is the supervisor that ends it, for the second may be the
    first that was passed on.

    USR1: tell where every run is. USR2: pop no more until CONT. HUP: there is nobody to begin anew.
    """
    loop, call, told = asyncio.get_running_loop(), soon(), False

    def stop(number: signal.Signals) -> None:
        nonlocal told
        if told and not supervised:
            os._exit(128 + number)
        told = True
        shutdown.begin()
        call(worker.stop)

    on(DEADLY, stop)
    on(
        ("SIGUSR1",), lambda _: threading.Thread(target=worker.dump_stacks, args=[loop]).start()
    )  # the log may be what was interrupted
    on(("SIGUSR2",), lambda _: call(worker.pause))
    on(("SIGCONT",), lambda _: call(worker.resume))
    on(
        ("SIGHUP",),
        lambda _: call(lambda: log.warning("worker.reload_ignored", why="SIGHUP is for `-w`")),
    )


def obeyed_by_supervisor(supervisor: Supervisor) -> None:
    """SIGTERM, SIGINT: drain all, and at the second kill them. HUP: replace them one by one. USR1,
    USR2, CONT: passed on."""
    call, told = soon(), False

    def hear(number: signal.Signals) -> None:
        nonlocal told
        match number.name:
            case "SIGHUP":
                supervisor.roll()
            case "SIGUSR1":
                supervisor.tell(number)
            case "SIGUSR2" | "SIGCONT":
                supervisor.pause(number.name == "SIGUSR2")
            case _ if told:
                supervisor.kill(128 + number)
            case _:
                told = True
                supervisor.stop()

    names = (*DEADLY, "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
    on(names, lambda number: call(lambda: hear(number)))
