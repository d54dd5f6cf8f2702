"""Several worker processes and their supervisor: `aioqless worker -w`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from aioqless import Client
from tests.cli.conftest import Aioqless, Running, Start
from tests.conftest import Until
from tests.worker.states import state_of


def pid_of(worker: Running, number: int) -> int:
    """Return the current process with this number."""
    return int(
        [line["pid"] for line in worker.logged("process.started") if line["process"] == number][-1]
    )


async def test_signal_lets_running_jobs_of_every_process_finish(
    client: Client, folder: Path, start: Start, until: Until
) -> None:
    async with start("-w", "2", "-c", "1") as worker:
        await until(
            lambda: len(worker.logged("process.became_ready")) == 2
        )  # otherwise one of them may run both jobs
        for jid in "ab":
            await client.queue("mail").put("Wait", jid=jid)
        await until(lambda: len(worker.logged("job.started")) == 2)
        worker.process.terminate()
        await until(lambda: len(worker.logged("worker.shutdown_started")) == 2)
        (folder / "go").touch()
        assert await worker.ended() == 0
    assert {await state_of(client, jid) for jid in "ab"} == {"complete"}
    assert {line["process"] for line in worker.logged("job.completed")} == {1, 2}
    assert [line["code"] for line in worker.logged("process.ended")] == [0, 0]


def ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@pytest.mark.long
async def test_supervisor_that_inherits_an_ignored_sigchld_sees_exit_codes(
    client: Client, start: Start, until: Until
) -> None:
    mail = client.queue("mail")
    async with start("-w", "1", "--max-jobs", "1", before=ignore_children) as worker:
        for jid in "ab":
            await mail.put("Slow", jid=jid)
        await until(lambda: len(worker.logged("process.replaced")) == 2)
        worker.process.terminate()
        assert await worker.ended() == 0
    assert not worker.logged("process.died")


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())


@pytest.mark.parametrize("options", [(), ("-w", "1")])
async def test_worker_that_inherits_blocked_signals_can_be_stopped(
    start: Start, options: tuple[str, ...]
) -> None:
    async with start(*options, before=block_signals) as worker:
        worker.process.terminate()
        assert await worker.ended() == 0


async def test_second_signal_kills_every_process(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Block", jid="a")
    async with start("-w", "2") as worker:
        await until(lambda: worker.logged("job.started"))
        worker.process.send_signal(signal.SIGINT)
        await until(lambda: worker.logged("supervisor.shutdown_started"))
        worker.process.send_signal(signal.SIGINT)
        assert await worker.ended() == 128 + signal.SIGINT
    assert await state_of(client, "a") == "running"


async def test_signal_received_twice_by_a_process_still_lets_jobs_finish(
    client: Client, folder: Path, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Wait", jid="a")
    async with start("-w", "1") as worker:
        await until(lambda: worker.logged("job.started"))
        os.kill(pid_of(worker, 1), signal.SIGTERM)  # as when a whole process group is stopped
        await until(lambda: worker.logged("worker.shutdown_started"))
        worker.process.terminate()
        await until(lambda: worker.logged("supervisor.shutdown_started"))
        (folder / "go").touch()
        assert await worker.ended() == 0
    assert await state_of(client, "a") == "complete"


async def test_killed_process_is_replaced_and_its_job_runs_again(
    client: Client, start: Start, until: Until
) -> None:
    await client.config.set("heartbeat", 1)
    await client.config.set("grace-period", 0)
    await client.queue("mail").put("Once", jid="a")
    async with start("-w", "1") as worker:
        await until(lambda: worker.logged("job.started"))
        os.kill(pid_of(worker, 1), signal.SIGKILL)
        await until(lambda: worker.logged("job.completed"))
        (died,) = await until(lambda: worker.logged("process.died"))
        assert (died["process"], died["code"]) == (1, -signal.SIGKILL)
        worker.process.terminate()
        assert await worker.ended() == 0


async def test_processes_have_distinct_numbers_and_names(
    client: Client, start: Start, until: Until
) -> None:
    async with start("-w", "2", "--name", "mailer") as worker:
        await until(lambda: len(worker.logged("process.became_ready")) == 2)

        async def both_have_popped() -> bool:
            return {each.name for each in await client.workers.counts()} == {
                "mailer-1",
                "mailer-2",
            }

        await until(both_have_popped)
        assert {(line["process"], line["worker"]) for line in worker.logged("worker.started")} == {
            (1, "mailer-1"),
            (2, "mailer-2"),
        }


async def test_rolling_restart_replaces_every_process_while_jobs_run_once(
    client: Client, start: Start, until: Until
) -> None:
    jids = []

    async def put_until_rolled() -> bool:
        jids.append(await client.queue("mail").put("Slow", 0.02))
        return bool(worker.logged("supervisor.restart_finished"))

    async with start("-w", "2") as worker:
        await until(lambda: len(worker.logged("process.became_ready")) == 2)
        former = {pid_of(worker, 1), pid_of(worker, 2)}
        worker.process.send_signal(signal.SIGHUP)
        await until(put_until_rolled)
        assert not former & {line["pid"] for line in worker.logged("process.started")[2:]}
        await until(lambda: len(worker.logged("job.completed")) == len(jids))
        worker.process.terminate()
        assert await worker.ended() == 0
    assert len(worker.logged("process.started")) == 4 and not worker.logged("process.died")
    assert sorted(line["jid"] for line in worker.logged("job.started")) == sorted(jids)
    events = [line["event"] for line in worker.lines]
    works = 2  # processes that run jobs
    for event in events[
        events.index("supervisor.restart_started") : events.index("supervisor.restart_finished")
    ]:
        works += {"process.became_ready": 1, "worker.shutdown_started": -1}.get(event, 0)
        assert works >= 2


@pytest.mark.long
async def test_rolling_restart_keeps_the_old_process_if_the_new_one_fails(
    folder: Path, client: Client, start: Start, until: Until
) -> None:
    async with start("-w", "1") as worker:
        await until(lambda: worker.logged("process.became_ready"))
        (folder / "jobs.py").write_text("import antimatter")
        worker.process.send_signal(signal.SIGHUP)
        await until(lambda: worker.logged("supervisor.restart_failed"))
        await client.queue("mail").put("Slow", jid="a")
        await until(lambda: worker.logged("job.completed"))
        assert worker.logged("job.completed")[0]["process"] == 1


async def test_processes_finish_running_jobs_after_their_supervisor_was_killed(
    client: Client, folder: Path, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Wait", jid="a")
    async with start("-w", "2") as worker:
        await until(
            lambda: worker.logged("job.started") and len(worker.logged("process.became_ready")) == 2
        )
        worker.process.kill()
        await until(lambda: len(worker.logged("worker.orphaned")) == 2)
        (folder / "go").touch()
        await until(lambda: len(worker.logged("worker.stopped")) == 2)
    assert await state_of(client, "a") == "complete"


@pytest.mark.parametrize(
    ("module", "options", "code", "why"),
    [
        ("jobs", ["-c", "0"], 1, "concurrency must be an integer >= 1 (got 0)"),
        ("jobz", [], 1, "there is no module 'jobz'"),
        ("jobs", ["--health", "here"], 1, "health 'here' must be PORT or HOST:PORT"),
    ],
)
async def test_failure_to_start_every_process_ends_the_supervisor_with_the_reason(
    aioqless: Aioqless, module: str, options: list[str], code: int, why: str
) -> None:
    ended = await aioqless("worker", module, "-w", "2", *options)
    assert (ended.code, why in " ".join(ended.err.split())) == (code, True), ended.err


async def test_burst_of_several_processes_ends_when_the_queue_is_empty(
    client: Client, aioqless: Aioqless
) -> None:
    for _ in range(30):
        await client.queue("mail").put("Slow", 0.01)
    ended = await aioqless("worker", "jobs", "-q", "mail", "-w", "2", "-c", "1", "--burst")
    assert ended.code == 0 and ended.err.count("job.completed") == 30


@pytest.mark.long
async def test_reload_restarts_on_changed_sources_and_waits_while_they_are_broken(
    folder: Path, client: Client, start: Start, until: Until
) -> None:
    async with start("--reload") as worker:
        await until(lambda: worker.logged("process.became_ready"))
        (folder / "jobs.py").write_text(
            "import aioqless\n@aioqless.job(klass='New')\nasync def new(job: aioqless.Job"
        )
        await until(lambda: worker.logged("supervisor.restart_failed"))
        (folder / "jobs.py").write_text(
            "import aioqless\n@aioqless.job(klass='New')\nasync def new(job: aioqless.Job) -> "
            "None: ..."
        )
        await until(lambda: worker.logged("supervisor.restart_finished"))
        await client.queue("mail").put("New")
        await until(lambda: worker.logged("job.completed"))
        assert all(
            line["files"] == ["jobs.py"] for line in worker.logged("supervisor.sources_changed")
        )


@pytest.mark.long
async def test_failed_start_under_reload_waits_for_the_next_change(
    folder: Path, environment: dict[str, str], start: Start, until: Until
) -> None:
    text = (folder / "jobs.py").read_text()
    (folder / "jobs.py").write_text("import antimatter")
    async with start("--reload", begun="process.died") as worker:
        (folder / "jobs.py").write_text(text)
        await until(lambda: worker.logged("process.became_ready"))
