"""Signals: stack dumps, pausing, and forked children."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client
from tests.cli.conftest import PATIENCE, Start
from tests.conftest import Until


@pytest.mark.parametrize(
    ("klass", "where"),
    [
        ("Stay", "await asyncio.Event().wait()"),
        ("Block", "time.sleep(600)"),
        ("Hold", "time.sleep(job.data)"),
    ],
)
async def test_usr1_logs_the_current_line_of_every_job(
    client: Client, start: Start, until: Until, klass: str, where: str
) -> None:
    await client.queue("mail").put(klass, 600, jid="a")
    async with start() as worker:
        await until(lambda: worker.logged("job.started"))

        async def asked() -> dict[str, Any]:
            """Request a stack dump, again if the handler has not reached its first line."""
            before = len(worker.logged("worker.stacks_dumped"))
            worker.process.send_signal(signal.SIGUSR1)
            await until(lambda: len(worker.logged("worker.stacks_dumped")) > before)
            told = worker.logged("job.stack_dumped")[-1:]
            return told[0] if told and where in told[0]["stack"] else {}

        told = await until(asked)
        assert (told["jid"], told["klass"], told["queue"]) == ("a", klass, "mail") and told[
            "seconds"
        ] < PATIENCE
        assert told["stack"].startswith('  File "') and "jobs.py" in told["stack"].splitlines()[0]


async def test_usr2_pauses_a_worker_until_cont(client: Client, start: Start, until: Until) -> None:
    async with start() as worker:
        worker.process.send_signal(signal.SIGUSR2)
        await until(lambda: worker.logged("worker.paused"))
        await client.queue("mail").put("Slow")
        worker.process.send_signal(signal.SIGUSR1)
        await until(lambda: worker.logged("worker.stacks_dumped"))
        assert not worker.logged("job.started")
        worker.process.send_signal(signal.SIGCONT)
        await until(lambda: worker.logged("job.completed"))


async def test_hup_without_processes_is_logged_and_ignored(
    client: Client, start: Start, until: Until
) -> None:
    async with start() as worker:
        worker.process.send_signal(signal.SIGHUP)
        await until(lambda: worker.logged("worker.reload_ignored"))
        await client.queue("mail").put("Slow")
        await until(lambda: worker.logged("job.completed"))


async def test_second_signal_ends_a_worker_with_a_blocked_loop(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Hold", 600)
    async with start() as worker:
        await until(lambda: worker.logged("job.started"))
        ended = asyncio.create_task(worker.process.wait())
        while not ended.done():  # two pending signals of one kind are delivered as one
            worker.process.terminate()
            await asyncio.wait([ended], timeout=0.2)
        assert await ended == 128 + signal.SIGTERM


@pytest.mark.long
@pytest.mark.parametrize("klass", ["Pool", "PoolApart"])
async def test_forked_children_of_a_handler_end_by_signals(
    client: Client, start: Start, until: Until, klass: str
) -> None:
    """Leaving the block of a `multiprocessing.Pool` sends SIGTERM to its processes and waits for
    their end."""
    jids = [await client.queue("mail").put(klass) for _ in range(3)]
    async with start() as worker:
        await until(lambda: len(worker.logged("job.completed")) == 3)
    for jid in jids:
        job = await client.jobs.get(jid)
        assert job and job.data == [1, 2]


@pytest.mark.parametrize(
    ("options", "event"),
    [(["-w", "1"], "supervisor.restart_started"), ([], "worker.reload_ignored")],
)
async def test_hup_does_not_end_a_worker_that_is_still_starting(
    folder: Path, start: Start, until: Until, options: list[str], event: str
) -> None:
    # Shadows a library that a worker imports: the signal arrives during the imports.
    (folder / "msgspec.py").write_text(
        "import os, signal, sys\n"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
        "here = sys.path.pop(0)\n"
        "del sys.modules['msgspec']\n"
        "import msgspec\n"
        "sys.path.insert(0, here)\n"
    )
    async with start(*options) as worker:
        await until(lambda: worker.logged(event), PATIENCE)
