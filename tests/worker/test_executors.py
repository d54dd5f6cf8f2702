"""Executors: handlers in threads and processes, how they are stopped, and crashed processes."""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from aioqless import Client, Handler, Job, JobRecord, NewJob, middleware
from aioqless.contrib.process_pool import child, pool
from aioqless.contrib.process_pool.ipc import LENGTH
from aioqless.worker import runner
from tests.conftest import Until
from tests.worker import in_processes
from tests.worker.conftest import Lines, Work
from tests.worker.states import is_alive, is_gone

Began: TypeAlias = Callable[..., Awaitable[int]]


async def found(client: Client, jid: str) -> JobRecord:
    found = await client.jobs.get(jid)
    assert found
    return found


async def failure_of(client: Client, jid: str) -> tuple[str, str]:
    """Return the group and the text of a job's failure."""
    job = await found(client, jid)
    assert job.state == "failed" and job.failure, job.state
    return job.failure.group, job.failure.traceback


def files_of(folder: Path, jid: str) -> list[Path]:
    """Return the files that the runs of a job wrote when they started, the oldest first."""
    return sorted(folder.glob(f"{jid}-began-*"))


@pytest.fixture
def late_deaths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time to end a killed process."""
    monkeypatch.setattr(runner, "KILL_MARGIN", 30)


@pytest.fixture
def began(tmp_path: Path, until: Until) -> Began:
    """Wait until a run has started: `await began("a", 2)` for the second run of job a.

    Returns the pid of its process. Handlers get the folder in their data.
    """

    async def began(jid: str, run: int = 1) -> int:
        files = await until(lambda: files_of(tmp_path, jid)[run - 1 :])
        return int(files[0].read_text())

    return began


# Data and results of a handler in a process


async def test_handler_in_a_process_reads_and_changes_its_data(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    jid = await client.queue("mail").put(in_processes.resize.data(path="a.png"), tags=["x"])
    async with work(in_processes.resize):
        await until(lambda: lines.of("job.advanced", to="billing"))
    job = await found(client, jid)
    pid = job.data.pop("pid")
    assert job.state == "waiting" and job.data == {
        "path": "a.png",
        "width": 100,
        "tags": ["x"],
        "jid": jid,
        "fence": 1,
    }
    assert pid != os.getpid()


async def test_process_runs_many_jobs_in_its_main_thread(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    jids = await client.queue("mail").put_many(NewJob(in_processes.pid, {}) for _ in range(20))
    async with work(in_processes.pid, processes=1):
        await until(lambda: len(lines.of("job.completed")) == 20)
    data = [(await found(client, jid)).data for jid in jids]
    assert len({each["pid"] for each in data}) == 1 and all(each["thread"] for each in data)


async def test_jobs_run_in_at_most_the_configured_number_of_processes(
    client: Client, work: Work, until: Until, began: Began, tmp_path: Path
) -> None:
    for jid in "abc":
        await client.queue("mail").put(in_processes.look, {"folder": str(tmp_path)}, jid=jid)
    async with work(in_processes.look, processes=2, shutdown_timeout=0) as worker:
        pids = {await began("a"), await began("b")}
        await until(lambda: len(worker.running) == 3)
    # it waited, and was released before it started
    assert len(pids) == 2 and not files_of(tmp_path, "c")
    assert (await found(client, "c")).state == "waiting" and (
        await found(client, "c")
    ).remaining == 5


@pytest.mark.parametrize(
    ("what", "group", "told"),
    [
        ("unkind", "mail-Unkind", "Unkind: 1 and 2"),
        ("local", "mail-Local", "Local: of here"),
        ("exit", "mail-SystemExit", "SystemExit: 3"),
        ("returned", "mail-TypeError", "what it returned can't be sent"),
    ],
)
async def test_exception_in_a_process_fails_the_job_with_its_traceback(
    client: Client, work: Work, until: Until, lines: Lines, what: str, group: str, told: str
) -> None:
    jid = await client.queue("mail").put(in_processes.raises.data(what))
    async with work(in_processes.raises):
        await until(lambda: lines.of("job.failed"))
    failed, message = await failure_of(client, jid)
    assert failed == group and told in message
    assert ("raises" in message) == (what != "returned") and "inside.py" not in message


@pytest.mark.parametrize(
    ("what", "group", "delay"), [("retry", "later", 30), ("transient", "mail-ConnectionError", 60)]
)
async def test_handler_in_a_process_can_raise_retry(
    client: Client, work: Work, until: Until, lines: Lines, what: str, group: str, delay: int
) -> None:
    jid = await client.queue("mail").put(in_processes.raises.data(what))
    async with work(in_processes.raises):
        await until(lambda: lines.of("job.retried", delay=delay, remaining=4))
    job = await found(client, jid)
    assert job.state == "scheduled" and job.failure and job.failure.group == group


async def test_context_variables_reach_processes_if_they_can_be_pickled(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @middleware
    async def tenant(job: Job[Any], call: Any) -> Any:
        in_processes.TENANT.set("ann")
        in_processes.UNSENT.set(threading.Lock())
        return await call()

    jid = await client.queue("mail").put("Context", {})
    async with work(in_processes.context, tenant, name="w") as worker:
        await until(lambda: lines.of("job.completed"))
    data = (await found(client, jid)).data
    assert data["bound"] == {"jid": jid, "klass": "Context", "queue": "mail", "worker": worker.name}
    assert (data["tenant"], data["unsent"]) == ("ann", "nothing")


# Stopping


@pytest.mark.parametrize("klass", ["Ignore", "Look", "Await"])
async def test_process_that_lost_its_lock_is_notified_then_killed_and_replaced(
    client: Client, work: Work, until: Until, lines: Lines, began: Began, tmp_path: Path, klass: str
) -> None:
    handlers = (in_processes.ignore, in_processes.look, in_processes.awaits, in_processes.pid)
    await client.queue("mail").put(klass, {"folder": str(tmp_path)}, jid="a")
    async with work(
        *handlers,
        processes=1,
        kill_after=0.1 if klass == "Ignore" else 30,
    ) as worker:
        pid = await began("a")
        await client.jobs.cancel("a")
        await until(lambda: lines.of("job.lock_lost", jid="a"))
        await until(lambda: not worker.running)
        assert is_alive(pid) == (klass != "Ignore")
        other = await client.queue("mail").put(in_processes.pid, {})
        await until(lambda: lines.of("job.completed", jid=other))
    if klass != "Ignore":
        assert (tmp_path / "a-ended").read_text() == "lost"
    assert ((await found(client, other)).data["pid"] == pid) == (klass != "Ignore")
    assert not is_alive(pid)


async def test_operator_timeout_ends_the_process_before_the_job_runs_again(
    client: Client, work: Work, until: Until, began: Began, tmp_path: Path
) -> None:
    await client.queue("mail").put(in_processes.ignore, {"folder": str(tmp_path)}, jid="a")
    async with work(
        in_processes.ignore,
        processes=2,
        kill_after=0.1,
        shutdown_timeout=0,
    ):
        first = await began("a")
        await client.jobs.unlock("a")
        second = await began("a", 2)
        assert first != second and not is_alive(first)


async def test_process_over_its_timeout_is_killed_and_its_job_fails(
    client: Client, work: Work, until: Until, lines: Lines, began: Began, tmp_path: Path
) -> None:
    await client.queue("mail").put(in_processes.hasty, {"folder": str(tmp_path)}, jid="a")
    async with work(in_processes.hasty, kill_after=1.5) as worker:
        pid = await began("a")
        await until(lambda: lines.of("job.failed", group="mail-timeout"))
        assert is_alive(pid) and worker.running == [
            "a"
        ]  # a slot is free when the code has stopped, not before
        await until(lambda: not worker.running)
        assert not is_alive(pid)
    assert (await failure_of(client, "a"))[1] == "it ran for longer than 0.2 s"


async def test_waiting_for_a_process_does_not_count_towards_the_timeout(
    client: Client, work: Work, until: Until, lines: Lines, began: Began, tmp_path: Path
) -> None:
    for jid in "ab":
        await client.queue("mail").put(in_processes.hasty, {"folder": str(tmp_path)}, jid=jid)
    async with work(in_processes.hasty, processes=1, kill_after=1):
        await began("a")
        await began("b")
        await until(lambda: len(lines.of("job.failed", group="mail-timeout")) == 2)
    a, b = (lines.of("job.failed", jid=jid)[0]["seconds"] for jid in "ab")
    assert b > a + 0.4


@pytest.mark.parametrize(
    "handler",
    [in_processes.look_hastily, in_processes.look_hastily_in_thread],
    ids=lambda handler: handler.klass,
)
async def test_handler_in_a_process_sees_its_timeout(
    client: Client, work: Work, until: Until, lines: Lines, tmp_path: Path, handler: Handler[...]
) -> None:
    await client.queue("mail").put(handler, {"folder": str(tmp_path)}, jid="a")
    async with work(handler, kill_after=30) as worker:
        await until(lambda: lines.of("job.failed", group="mail-timeout"))
        await until(lambda: not worker.running)
    assert (tmp_path / "a-ended").read_text() == "timeout"


@pytest.mark.parametrize(
    "handler", [in_processes.look, in_processes.look_in_thread], ids=lambda handler: handler.klass
)
async def test_job_whose_handler_stops_at_shutdown_is_released(
    client: Client, work: Work, began: Began, tmp_path: Path, handler: Handler[...]
) -> None:
    await client.queue("mail").put(handler, {"folder": str(tmp_path)}, jid="a")
    async with work(handler, shutdown_timeout=0, kill_after=30):
        await began("a")
    job = await found(client, "a")
    assert (job.state, job.remaining, job.worker) == ("waiting", 5, "")
    assert (tmp_path / "a-ended").read_text() == "shutdown"


@pytest.mark.usefixtures("late_deaths")
async def test_process_that_ignores_shutdown_is_killed_and_its_job_released(
    client: Client, work: Work, began: Began, tmp_path: Path
) -> None:
    await client.queue("mail").put(in_processes.ignore, {"folder": str(tmp_path)}, jid="a")
    async with work(in_processes.ignore, shutdown_timeout=0.05, kill_after=0.1):
        pid = await began("a")
    job = await found(client, "a")
    assert (job.state, job.remaining) == ("waiting", 5) and not is_alive(pid)


@pytest.mark.parametrize("dies", [True, False])
async def test_child_processes_of_a_job_end_with_its_process(
    client: Client, work: Work, until: Until, began: Began, tmp_path: Path, dies: bool
) -> None:
    await client.queue("mail").put(
        in_processes.starts, {"folder": str(tmp_path), "dies": dies}, jid="a"
    )
    async with work(in_processes.starts, shutdown_timeout=0, kill_after=0.1):
        await began("a")
        program = int((tmp_path / "program").read_text())
    await until(lambda: is_gone(program))


async def test_process_that_finishes_when_stopped_completes_its_job(
    client: Client, work: Work, began: Began, tmp_path: Path
) -> None:
    await client.queue("mail").put(in_processes.best, {"folder": str(tmp_path)}, jid="a")
    async with work(in_processes.best, shutdown_timeout=0, kill_after=30):
        await began("a")
    job = await found(client, "a")
    assert job.state == "complete" and job.data["page"] == 7


async def test_worker_stopped_while_a_process_starts_releases_the_job(
    client: Client, work: Work, until: Until
) -> None:
    await client.queue("mail").put(in_processes.pid, {}, jid="a")
    async with work(in_processes.pid) as worker:
        await until(lambda: worker.running)
        worker.stop_at_once()
    assert (await found(client, "a")).state == "waiting"


# Crashes


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"signal": 9}, "signal SIGKILL"),
        ({"signal": 11}, "signal SIGSEGV"),
        ({"code": 3}, "exit code 3"),
    ],
)
async def test_crashed_process_fails_its_own_job_only(
    client: Client,
    work: Work,
    until: Until,
    lines: Lines,
    began: Began,
    tmp_path: Path,
    how: dict[str, int],
    told: str,
) -> None:
    await client.queue("mail").put(in_processes.look, {"folder": str(tmp_path)}, jid="other")
    async with work(
        in_processes.look,
        in_processes.die,
        in_processes.pid,
        processes=2,
        shutdown_timeout=0,
    ) as worker:
        await began("other")
        await client.queue("mail").put(in_processes.die, {"folder": str(tmp_path), **how}, jid="a")
        await until(lambda: lines.of("job.failed", jid="a"))
        await until(lambda: worker.running == ["other"])
        await client.queue("mail").put(in_processes.pid, {}, jid="next")
        await until(lambda: lines.of("job.completed", jid="next"))
        assert worker.healthy
    assert await failure_of(client, "a") == (
        "mail-ProcessDied",
        f"the process that performed it ended with {told}",
    )
    assert (await found(client, "other")).state == "waiting"


@pytest.mark.parametrize(
    ("what", "group"),
    [
        ("no text", "Unreadable"),
        ("no text of the result", "TypeError"),
        ("descriptors closed", "ProcessDied"),
        ("descriptors reused", "ProcessDied"),
        ("memory", "MemoryError"),
        ("memory of the result", "MemoryError"),
    ],
)
async def test_handler_with_an_unserializable_result_fails_and_frees_its_slot(
    client: Client, work: Work, until: Until, lines: Lines, what: str, group: str
) -> None:
    await client.queue("mail").put(in_processes.unreportable, {"what": what}, jid="a")
    async with work(
        in_processes.unreportable,
        in_processes.pid,
        processes=1,
        max_jobs_per_process=1,
    ) as worker:
        await until(lambda: lines.of("job.failed", jid="a"))
        await client.queue("mail").put(in_processes.pid, {}, jid="next")
        await until(lambda: lines.of("job.completed", jid="next"))
        assert worker.healthy
    failed, _ = await failure_of(client, "a")
    assert (
        failed in (f"mail-{group}", "mail-ProcessDied")
        if group == "MemoryError"
        else failed == f"mail-{group}"
    )


async def test_fork_of_a_handler_does_not_report_the_outcome(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    await client.queue("mail").put(in_processes.unreportable, {"what": "forked"}, jid="a")
    await client.queue("mail").put(in_processes.pid, {}, jid="b")
    async with work(in_processes.unreportable, in_processes.pid, processes=1):
        await until(lambda: len(lines.of("job.completed")) == 2)
    jobs = [await found(client, jid) for jid in "ab"]
    assert jobs[0].data["pid"] == jobs[1].data["pid"]


async def test_crash_of_an_idle_process_affects_no_job(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    pids = []
    async with work(in_processes.pid, processes=1):
        for jid in "ab":
            await client.queue("mail").put(in_processes.pid, {}, jid=jid)
            await until(lambda: lines.of("job.completed", jid=jid))  # noqa: B023
            pids.append((await found(client, jid)).data["pid"])
            if jid == "a":
                os.kill(pids[0], signal.SIGKILL)
                await until(lambda: not is_alive(pids[0]))
    assert len(set(pids)) == 2


@pytest.mark.usefixtures("late_deaths")
async def test_suspended_process_is_logged_with_its_job(
    client: Client,
    work: Work,
    until: Until,
    lines: Lines,
    began: Began,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "CHECK_INTERVAL", 0.05)
    for jid in "ab":
        await client.queue("mail").put(in_processes.look, {"folder": str(tmp_path)}, jid=jid)
    async with work(in_processes.look, shutdown_timeout=0, processes=2, kill_after=0.1):
        await began("b")
        os.kill(pid := await began("a"), signal.SIGSTOP)
        await until(lambda: len(lines.of("job.process_suspended", jid="a", pid=pid)) > 1)
    first, second = lines.of("job.process_suspended")[:2]
    assert first["seconds"] < second["seconds"]
    assert not lines.of("job.process_suspended", jid="b")
    assert [(await found(client, jid)).state for jid in "ab"] == ["waiting", "waiting"]


async def test_process_is_replaced_after_max_jobs(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    jids = await client.queue("mail").put_many(NewJob(in_processes.pid, {}) for _ in range(5))
    async with work(in_processes.pid, processes=1, max_jobs_per_process=2):
        await until(lambda: len(lines.of("job.completed")) == 5)
    pids = [(await found(client, jid)).data["pid"] for jid in jids]
    assert sorted(pids.count(pid) for pid in set(pids)) == [1, 2, 2] and not any(
        is_alive(pid) for pid in pids
    )


async def test_result_that_is_too_large_is_refused_before_it_is_sent_to_the_worker(
    client: Client, work: Work, until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    class Recording(struct.Struct):
        def unpack(self, buffer: Any, /) -> tuple[Any, ...]:
            sizes.extend(super().unpack(buffer))
            return super().unpack(buffer)

    monkeypatch.setattr(child, "LENGTH", Recording(LENGTH.format))
    mail = client.queue("mail")
    async with work(in_processes.return_much):
        small = await mail.put("ReturnMuch", {"size": 1 << 19})
        assert await small.result(timeout=60) == "x" * (1 << 19)
        await mail.put("ReturnMuch", {"size": 1 << 26}, jid="a")
        await until(lambda: lines.of("job.failed"))
    group, message = await failure_of(client, "a")
    assert group == "mail-InvalidData" and "data must be at most 1,048,576 bytes" in message
    assert max(sizes) < 1 << 20 and len(sizes) >= 3
