"""Several processes of a worker, and this one to look after them."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from aioqless.cli.signal_handlers import obeyed_by_supervisor
from aioqless.contrib.supervisor import Plan, Supervisor
from aioqless.contrib.supervisor.health_check import told
from aioqless.contrib.supervisor.reload_watcher import Changes, changes
from aioqless.errors import AioqlessError
from aioqless.log import log


def supervise(plan: Plan, *, health: str | None, but: Path | None) -> int:
    """Look after the processes until all have ended; returns the exit code. Sources below `but`
    don't count. Raises AioqlessError."""
    if os.name != "posix":
        raise AioqlessError(
            "-w and --reload need signals, which this platform hasn't got: start each process by other means"
        )
    changed = changes(Path.cwd(), *([but.resolve()] if but else [])) if plan.forgiving else None
    return asyncio.run(_supervise(Supervisor(plan), health, changed))


def command(number: int, line: int, paused: bool) -> list[str]:
    """What starts one process: the command that started this one, with what only its supervisor can
    say."""
    place = len(sys.orig_argv) - len(sys.argv) + 2  # behind `worker`
    given = ["--number", str(number), "--line", str(line), *(["--paused"] if paused else [])]
    return [sys.executable, *sys.orig_argv[1:place], *given, *sys.orig_argv[place:]]


async def _supervise(supervisor: Supervisor, health: str | None, changed: Changes | None) -> int:
    obeyed_by_supervisor(supervisor)
    async with AsyncExitStack() as stack:
        if health:
            await stack.enter_async_context(
                told(health, live=lambda: not supervisor.hung, ready=lambda: supervisor.ready > 0)
            )
        if changed is not None:
            stack.callback(asyncio.create_task(_roll_on_change(supervisor, changed)).cancel)
        return await supervisor.run()


async def _roll_on_change(supervisor: Supervisor, changed: Changes) -> None:
    async for files in changed:
        log.info("supervisor.changed", files=files)
        supervisor.roll()
