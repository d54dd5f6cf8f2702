"""One process of a worker: its directory, its signals, its health, its line to a supervisor."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import typer

from aioqless.cli.app import run
from aioqless.cli.signals import obeyed_by_worker
from aioqless.client import Client
from aioqless.log import log
from aioqless.processes import WORN, Line
from aioqless.processes.health import told
from aioqless.processes.line import PAUSED, READY, STARTING
from aioqless.worker import Settings, Worker


@dataclass(frozen=True, kw_only=True)
class Process:
    """How one process is set up. `number`, `line` and `paused` are told by its supervisor, if it has one."""

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
        run(self.url, self.namespace, lambda client: self._work(client, handlers))

    async def _work(self, client: Client, handlers: Sequence[ModuleType]) -> None:
        log.info("redis.used", **client.where)
        name = f"{self.name}-{self.number}" if self.name and self.number else self.name  # each process' locks are its own
        worker = Worker(client, *handlers, settings=self.settings, name=name)
        if self.sandbox:
            from aioqless.processes import sandbox

            log.info("worker.sandboxed", directory=str(sandbox.enter(self.sandbox)))
        if self.paused:
            worker.pause()
        obeyed_by_worker(worker, supervised=self.line is not None)
        async with AsyncExitStack() as stack:
            if self.line is not None:
                line = asyncio.create_task(Line(self.line, lambda: _state(worker), lambda: _orphaned(worker)).run())
                stack.callback(line.cancel)
            elif self.health:
                await stack.enter_async_context(told(self.health, live=lambda: True, ready=lambda: worker.ready))
            gc.freeze()  # what stays for good: to walk through it at each full collection would hold all jobs up for 30 ms
            await worker.run()
        if worker.worn and self.line is not None:
            raise typer.Exit(WORN)


def _state(worker: Worker) -> bytes:
    return PAUSED if worker.paused else READY if worker.ready else STARTING


def _orphaned(worker: Worker) -> None:
    worker.stop()
    log.warning("worker.orphaned")
