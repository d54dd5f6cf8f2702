"""Runs a supervisor as the main program of a process."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

from aioqless.cli.health_check import serve_health_checks
from aioqless.cli.signal_handlers import TERMINATING, loop_caller, on_signals
from aioqless.cli.systemd import ServiceState, SystemdNotifier, make_notifier
from aioqless.cli.worker_options import WorkerOptions
from aioqless.contrib.supervisor.child import ProcessCommand
from aioqless.contrib.supervisor.reload_watcher import Changes, watch_sources
from aioqless.contrib.supervisor.supervisor import Supervisor, SupervisorSettings
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log


def supervise(command: ProcessCommand, processes: int, options: WorkerOptions) -> int:
    """Run worker processes until all have ended; return the exit code.

    Raises:
        AioqlessError: on Windows.
    """
    if os.name != "posix":
        raise AioqlessError(
            "-w and --reload need UNIX signals, which this platform doesn't have: "
            "start each process by other means"
        )
    changes = watch_sources(Path.cwd()) if options.reload else None
    settings = SupervisorSettings(
        command=command,
        processes=processes,
        shutdown_timeout=options.shutdown_timeout + options.kill_after,
        burst=options.burst,
        reload=options.reload,
    )
    return asyncio.run(_run(Supervisor(settings), options.health, options.metrics, changes))


async def _run(
    supervisor: Supervisor, health: str | None, metrics: str | None, changes: Changes | None
) -> int:
    notifier = make_notifier()
    _install_signal_handlers(supervisor, notifier)
    async with AsyncExitStack() as stack:
        if health:
            checks = serve_health_checks(
                health, live=lambda: not supervisor.hung, ready=lambda: supervisor.ready > 0
            )
            await stack.enter_async_context(checks)
        if metrics:
            from aioqless.contrib.telemetry.metrics_server import serve_shared_metrics

            shared = serve_shared_metrics(metrics, lambda: supervisor.numbers)
            await stack.enter_async_context(shared)
        if notifier:
            await stack.enter_async_context(notifier.watch(lambda: _service_state(supervisor)))
        if changes is not None:
            stack.callback(asyncio.create_task(_restart_on_change(supervisor, changes)).cancel)
        return await supervisor.run()


def _service_state(supervisor: Supervisor) -> ServiceState:
    """Return its state: it has started when a process works or is paused."""
    return ServiceState(
        started=supervisor.working > 0,
        healthy=not supervisor.hung,
        text=f"{supervisor.ready} processes take jobs",
    )


def _install_signal_handlers(supervisor: Supervisor, notifier: SystemdNotifier | None) -> None:
    """Install the signal handlers of a supervisor.

    SIGTERM, SIGINT: graceful shutdown of all processes; the second one kills them. SIGHUP: rolling
    restart. SIGUSR1, SIGUSR2, SIGCONT: passed on.
    """
    call, stopping = loop_caller(), False

    def handle(number: signal.Signals) -> None:
        nonlocal stopping
        match number.name:
            case "SIGHUP":
                supervisor.request_restart()
            case "SIGUSR1":
                supervisor.send_signal(number)
            case "SIGUSR2" | "SIGCONT":
                supervisor.set_paused(number.name == "SIGUSR2")
            case _ if stopping:
                supervisor.kill(128 + number)
            case _:
                stopping = True
                if notifier:
                    notifier.stopping()
                supervisor.stop()

    names = (*TERMINATING, "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
    on_signals(names, lambda number: call(lambda: handle(number)))


async def _restart_on_change(supervisor: Supervisor, changes: Changes) -> None:
    async for files in changes:
        log.info("supervisor.sources_changed", files=files)
        supervisor.request_restart()
