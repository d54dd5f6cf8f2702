"""The shutdown deadline: a worker process ends in time, whatever its handlers do."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from aioqless import Client
from tests.cli.conftest import PATIENCE, Start
from tests.cli.test_supervisor import pid_of
from tests.conftest import Until
from tests.server import OwnServer
from tests.worker.states import is_gone, state_of

SHORT = ("--shutdown-timeout", "0.5", "--kill-after", "0.1")


async def test_thread_left_by_a_handler_does_not_keep_the_process_alive(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Leave", jid="a")
    async with start(*SHORT) as worker:
        await until(lambda: worker.logged("job.completed"))
        worker.process.terminate()
        assert await worker.ended() == 0
    (forced,) = worker.logged("process.exit_forced")
    assert forced["code"] == 0 and "left behind" in forced["threads"]
    assert await state_of(client, "a") == "complete"


@pytest.mark.parametrize("klass", ["Block", "Suppress"])
async def test_job_that_does_not_stop_is_released_and_the_process_ends(
    client: Client, start: Start, until: Until, klass: str
) -> None:
    await client.queue("mail").put(klass, jid="a")
    async with start(*SHORT) as worker:
        await until(lambda: worker.logged("job.started"))
        worker.process.terminate()
        assert await worker.ended() == 0
    (left,) = worker.logged("job.abandoned")
    assert left["jid"] == "a" and "jobs.py" in left["stack"]
    assert worker.logged("process.exit_forced")
    back = await client.jobs.get("a")
    assert back and (back.state, back.remaining, back.worker) == ("waiting", 5, "")


async def test_blocked_loop_does_not_keep_the_process_alive(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Hold", 600, jid="a")
    async with start(*SHORT) as worker:
        await until(lambda: worker.logged("job.started"))
        worker.process.terminate()
        assert await worker.ended() == 1
    assert worker.logged("process.exit_forced")
    assert await state_of(client, "a") == "running"  # until its lock expires


@pytest.mark.long
@pytest.mark.parametrize("klass", ["Block", "Hold", "Leave"])
async def test_processes_of_a_killed_supervisor_end_in_time(
    client: Client, start: Start, until: Until, klass: str
) -> None:
    await client.queue("mail").put(klass, 600)
    async with start("-w", "1", *SHORT) as worker:
        await until(lambda: worker.logged("job.started"))
        pid = pid_of(worker, 1)
        worker.process.kill()
        await until(lambda: is_gone(pid), PATIENCE)


@pytest.mark.long
@pytest.mark.parametrize("processes", [[], ["-w", "1"]], ids=["worker", "supervisor"])
@pytest.mark.parametrize("klass", ["Wait", "Suppress"])
async def test_outcomes_that_redis_cannot_take_end_with_the_process_and_its_exit_code(
    client: Client,
    own_server: OwnServer,
    folder: Path,
    start: Start,
    until: Until,
    processes: list[str],
    klass: str,
) -> None:
    async with Client(own_server.url, namespace=client.namespace) as other:
        await other.queue("mail").put(klass, jid="a")
    async with start(*processes, *SHORT, "--url", own_server.url) as worker:
        await until(lambda: worker.logged("job.started"))
        own_server.kill()
        (folder / "go").touch()
        await until(lambda: worker.logged("worker.redis_lost"))
        worker.process.terminate()
        assert await worker.ended() == 1
    assert [line["jid"] for line in worker.logged("job.outcome_dropped")] == ["a"]
    assert worker.logged("worker.stopped") and not worker.logged("process.killed")


async def test_stopped_process_of_a_job_ends_with_its_killed_worker(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Apart", True)
    async with start() as worker:
        (told,) = await until(lambda: worker.logged("apart.told"))
        os.kill(told["process"], signal.SIGSTOP)
        worker.process.kill()
        await until(lambda: is_gone(told["process"]))
