"""When a supervisor restarts its processes, and when it gives up."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioqless.contrib.supervisor import Supervisor, SupervisorSettings, child
from aioqless.contrib.supervisor import supervisor as supervisor_module
from aioqless.contrib.supervisor.child import Child, ProcessCommand
from tests.conftest import Until
from tests.worker.conftest import Lines

REPORT_READY = "import os, sys, time; os.write(int(sys.argv[2]), b'+'); "
WAIT = "time.sleep(600)"


def command(code: str) -> ProcessCommand:
    """Return a command that runs code with the number, status socket and pause as arguments."""
    return lambda number, status_fd, *, paused, id, after: [
        sys.executable,
        "-S",
        "-c",
        code,
        str(number),
        str(status_fd),
        str(paused),
    ]


@asynccontextmanager
async def running(
    code: str, **settings: Any
) -> AsyncIterator[tuple[Supervisor, asyncio.Task[int]]]:
    options = {"processes": 1, "shutdown_timeout": 1, **settings}
    supervisor = Supervisor(SupervisorSettings(command=command(code), **options))
    task = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, task
    finally:
        supervisor.kill(0)
        await task


@pytest.mark.parametrize("code", [1, 2, 3])
async def test_supervisor_gives_up_when_no_process_can_start(code: int) -> None:
    async with running(f"raise SystemExit({code})", processes=3) as (_, task):
        assert await asyncio.wait_for(task, 60) == code


async def test_start_is_retried_while_another_process_works(until: Until, tmp_path: Path) -> None:
    starts = 0
    go = tmp_path / "go"
    exits = f"""
import os, time
while not os.path.exists({str(go)!r}):
    time.sleep(0.01)
raise SystemExit(1)
"""

    def counted(number: int, status_fd: int, *, paused: bool, id: str, after: str) -> list[str]:
        nonlocal starts
        starts += 1
        # the first process works; the others wait for it, then exit with an error
        code = REPORT_READY + WAIT if number == 1 else exits
        return command(code)(number, status_fd, paused=paused, id=id, after=after)

    supervisor = Supervisor(SupervisorSettings(command=counted, processes=2, shutdown_timeout=1))
    task = asyncio.create_task(supervisor.run())
    await until(lambda: supervisor.ready == 1)
    go.touch()
    await until(lambda: starts >= 4)
    assert supervisor.ready == 1 and not task.done()
    supervisor.kill(9)
    assert await task == 9


async def test_process_that_has_reported_is_replaced_whatever_its_exit_code(
    until: Until, lines: Lines
) -> None:
    async with running(REPORT_READY + "raise SystemExit(1)") as (_, task):
        await until(lambda: len(lines.of("process.died", code=1)) == 3)
        assert not task.done()


async def test_signals_before_the_first_report_are_not_sent(until: Until) -> None:
    one = await Child.start(1, command("import time; " + WAIT), False, "")
    one.send_signal(signal.SIGUSR1)
    two = await Child.start(2, command(REPORT_READY + WAIT), False, "")
    await until(lambda: two.has_reported)
    two.send_signal(signal.SIGUSR1)
    assert await two.wait() == -signal.SIGUSR1 and not one.exit_task.done()
    one.send_signal(signal.SIGKILL)
    assert await one.wait() == -signal.SIGKILL


async def test_process_without_reports_counts_as_hung(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(REPORT_READY + WAIT) as (supervisor, _):
        await until(lambda: supervisor.ready == 1)
        monkeypatch.setattr(child, "HUNG_AFTER", 0.05)
        await until(lambda: supervisor.hung == 1)


async def test_rolling_restart_kills_an_old_process_that_does_not_end(
    until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "OVERTIME", 0.1)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    async with running(stubborn + REPORT_READY + WAIT, processes=2, shutdown_timeout=0.1) as (
        supervisor,
        _,
    ):
        await until(lambda: supervisor.ready == 2)
        supervisor.request_restart()
        await until(lambda: len(lines.of("process.ended")) == 2 and supervisor.ready == 2)
        assert {line["code"] for line in lines.of("process.ended")} == {-signal.SIGKILL}


async def test_reporting_process_that_ignores_sigterm_is_killed_too(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "OUTCOME_TIMEOUT", 0)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + REPORT_READY
    reports = "\nwhile True: os.write(int(sys.argv[2]), b'+'); time.sleep(0.05)"
    async with running(stubborn + reports, shutdown_timeout=-2.9) as (supervisor, task):
        await until(lambda: supervisor.ready == 1)
        supervisor.stop()
        assert await asyncio.wait_for(task, 60) == 1


async def test_hung_process_that_ignores_sigterm_is_killed(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "OVERTIME", 0.1)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    async with running(stubborn + REPORT_READY + WAIT, shutdown_timeout=0.1) as (supervisor, task):
        await until(lambda: supervisor.ready == 1)
        supervisor.stop()
        assert await asyncio.wait_for(task, 60) == 1


async def test_start_is_retried_when_descriptors_ran_out(until: Until, lines: Lines) -> None:
    few = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running(REPORT_READY + WAIT, processes=2) as (supervisor, task):
        await until(lambda: supervisor.ready == 2)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, few[1]))
        try:
            for line in lines.of("process.started"):
                os.kill(line["pid"], signal.SIGKILL)
            await until(lambda: len(lines.of("process.died")) == 2)
            await until(lambda: len(lines.of("process.start_failed")) >= 2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, few)
        await until(lambda: supervisor.ready == 2)
        assert not task.done()


async def test_child_processes_left_by_a_process_do_not_delay_its_restart(
    until: Until, lines: Lines
) -> None:
    async with running(REPORT_READY + "os.fork() or time.sleep(3); os._exit(5)"):
        await until(lambda: lines.of("process.died", code=5))


async def test_pause_also_applies_to_processes_started_later(until: Until, lines: Lines) -> None:
    async with running(
        "import os, sys, time; os.write(int(sys.argv[2]), b'=' if sys.argv[3] == 'True' else "
        "b'+'); " + WAIT
    ) as (it, _):
        await until(lambda: it.ready == 1)
        it.set_paused(True)  # this process has no handler for the signal and is killed by it
        await until(lambda: len(lines.of("process.became_ready")) == 2)
        assert it.ready == 0
