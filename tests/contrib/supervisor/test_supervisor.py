"""Which process is replaced, when, and which is the end of all."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from aioqless.contrib.supervisor import Plan, Supervisor, child
from aioqless.contrib.supervisor import supervisor as supervisor_module
from aioqless.contrib.supervisor.child import Child
from tests.conftest import Until

SPEAK = "import os, sys, time; line = int(sys.argv[2]); os.write(line, b'+'); "
WAIT = "time.sleep(600)"


def command(code: str) -> Callable[[int, int, bool], list[str]]:
    """Processes that run some code, knowing their number, their line, and whether they are
    paused."""
    return lambda number, line, paused: [
        sys.executable,
        "-S",
        "-c",
        code,
        str(number),
        str(line),
        str(paused),
    ]


@asynccontextmanager
async def running(code: str, **plan: object) -> AsyncIterator[tuple[Supervisor, asyncio.Task[int]]]:
    given = {"processes": 1, "grace": 1, **plan}
    supervisor = Supervisor(Plan(command=command(code), **given))  # type: ignore[arg-type]
    task = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, task
    finally:
        supervisor.kill(0)
        await task


@pytest.mark.parametrize("code", [1, 2, 3])
async def test_a_process_that_refuses_to_start_is_the_end_with_its_code(code: int) -> None:
    async with running(f"raise SystemExit({code})", processes=3) as (_, task):
        assert await asyncio.wait_for(task, 10) == code


async def test_a_process_that_refuses_to_start_beside_one_that_works_is_tried_again(
    until: Until,
) -> None:
    starts = 0

    def counted(number: int, line: int, paused: bool) -> list[str]:
        nonlocal starts
        starts += 1
        # the first to start works; the others wait until it does, then refuse
        return command(
            SPEAK + WAIT if number == 1 else "import time; time.sleep(0.3); raise SystemExit(1)"
        )(number, line, paused)

    supervisor = Supervisor(Plan(command=counted, processes=2, grace=1))
    task = asyncio.create_task(supervisor.run())
    await until(lambda: starts >= 4)
    assert supervisor.ready == 1 and not task.done()
    supervisor.kill(9)
    assert await task == 9


async def test_a_process_that_breaks_once_it_has_begun_is_replaced_whatever_its_code(
    until: Until,
) -> None:
    async with running(SPEAK + "raise SystemExit(1)") as (supervisor, task):
        place = supervisor._places[0]
        await until(lambda: place.strikes == 3)
        assert not task.done()


async def test_a_signal_that_comes_before_a_process_knows_it_does_not_kill_it(until: Until) -> None:
    one = await Child.started(1, command("import time; " + WAIT), False)
    one.tell(signal.SIGUSR1)
    two = await Child.started(2, command(SPEAK + WAIT), False)
    await until(lambda: two.began)
    two.tell(signal.SIGUSR1)
    assert await two.ended() == -signal.SIGUSR1 and not one.end.done()
    one.tell(signal.SIGKILL)
    assert await one.ended() == -signal.SIGKILL


async def test_a_process_that_says_nothing_for_long_counts_as_hung(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "HUNG", 0.05)
    async with running(SPEAK + WAIT) as (supervisor, _):
        await until(lambda: supervisor.ready == 1)
        await until(lambda: supervisor.hung == 1)


async def test_an_old_process_that_does_not_end_does_not_hold_up_a_roll(until: Until) -> None:
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    async with running(stubborn + SPEAK + WAIT, processes=2, grace=-4.9) as (supervisor, _):
        await until(lambda: supervisor.ready == 2)
        supervisor.roll()
        await until(lambda: supervisor.ready == 4)
        assert {each.number for each in supervisor._children} == {1, 2, 3, 4}


async def test_a_silent_process_that_ignores_its_end_is_killed(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "LATE", 0.1)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    async with running(stubborn + SPEAK + WAIT, grace=0.1) as (supervisor, task):
        await until(lambda: supervisor.ready == 1)
        supervisor.stop()
        assert await asyncio.wait_for(task, 10) == 0


async def test_a_process_that_cannot_be_started_now_is_started_later(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running(SPEAK + WAIT, processes=2) as (supervisor, task):
        await until(lambda: supervisor.ready == 2)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, few[1]))
        try:
            for each in supervisor._children:
                each.tell(signal.SIGKILL)
            await until(lambda: all(place.strikes >= 2 for place in supervisor._places))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, few)
        await until(lambda: supervisor.ready == 2)
        assert not task.done()


async def test_what_a_process_leaves_running_does_not_hold_its_place(until: Until) -> None:
    async with running(SPEAK + "os.fork() or time.sleep(3); os._exit(5)") as (supervisor, _):
        await until(lambda: supervisor._places[0].strikes >= 1)


async def test_a_pause_holds_for_processes_to_come(until: Until) -> None:
    async with running(
        "import os, sys, time; os.write(int(sys.argv[2]), b'=' if sys.argv[3] == 'True' else b'+'); "
        + WAIT
    ) as (it, _):
        await until(lambda: it.ready == 1)
        it.pause(True)  # this one knows no such signal, and dies of it
        await until(lambda: [each._word for each in it._children] == [b"="])
        assert it.ready == 0
