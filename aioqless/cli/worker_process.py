"""One process of a worker: its directory, its signals, its health, its line to a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import typer

from aioqless.cli.app import run
from aioqless.cli.descriptors import check_descriptor_limit
from aioqless.cli.shutdown import Shutdown
from aioqless.cli.signal_handlers import obeyed_by_worker, soon
from aioqless.client import Client
from aioqless.contrib.supervisor import WORN, Line
from aioqless.contrib.supervisor.health_check import told
from aioqless.contrib.supervisor.supervisor_pipe import PAUSED, READY, STARTING
from aioqless.log import log
from aioqless.worker import Settings, Worker

# seconds beyond `grace` and `kill_after` for killed processes to be seen to end and for outcomes to
# be stored
MARGIN = 2.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """How one process is set up. `number`, `line` and `paused` are told by its supervisor, if it
    has one."""

    settings: Settings
    name: str | None
    url: str | None
    namespace: str
    health: str | None = None
    sandbox: Path | None = None
    number: int | None = None
    line: int | None = None
    paused: bool = False

    def work(self, handlers: Sequence[ModuleType]) -> None:
        """Perform jobs until told to stop, or until its share is done."""
        check_descriptor_limit(0)
        run(self.url, self.namespace, lambda client: self._work(client, handlers))

    async def _work(self, client: Client, handlers: Sequence[ModuleType]) -> None:
        log.info("redis.used", **client.where)
        name = (
            f"{self.name}-{self.number}" if self.name and self.number else self.name
        )  # each process' locks are its own
        shutdown = Shutdown(
            self.settings.grace + self.settings.executors.kill_after + MARGIN,
            lambda: worker.waits_for_redis,
        )
        worker = Worker(
            client, *handlers, settings=self.settings, name=name, on_stopping=shutdown.begin
        )
        if self.sandbox:
            from aioqless.contrib.supervisor import working_dir

            log.info("worker.sandboxed", directory=str(working_dir.enter(self.sandbox)))
        if self.paused:
            worker.pause()
        obeyed_by_worker(worker, shutdown, supervised=self.line is not None)
        async with AsyncExitStack() as stack:
            if self.line is not None:
                line = asyncio.create_task(
                    Line(self.line, lambda: _state(worker), _orphaned(worker, shutdown)).run()
                )
                stack.callback(line.cancel)
            elif self.health:
                await stack.enter_async_context(
                    told(self.health, live=lambda: True, ready=lambda: worker.ready)
                )
            # what stays for good: to walk through it at each full collection would hold all jobs up
            # for 30 ms
            gc.freeze()
            try:
                await worker.run()
            finally:
                shutdown.begin()
        shutdown.code = WORN if worker.recycling and self.line is not None else 0
        if worker.abandoned:
            await worker.release_abandoned()
            shutdown.end()
        if shutdown.code:
            raise typer.Exit(shutdown.code)


def _state(worker: Worker) -> bytes:
    return PAUSED if worker.paused else READY if worker.ready else STARTING


def _orphaned(worker: Worker, shutdown: Shutdown) -> Callable[[], None]:
    """What the thread does that finds the supervisor gone."""
    call = soon()

    def stop() -> None:
        shutdown.begin()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            call(worker.stop)
        log.warning("worker.orphaned")

    return stop
