"""Recovery of the jobs of workers whose processes have ended, by workers of the same machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client, Worker
from aioqless.contrib.job_recovery import job_recovery, process_files
from aioqless.contrib.job_recovery.job_recovery import group_of
from aioqless.contrib.job_recovery.process_files import ProcessFile
from tests.conftest import Until
from tests.worker.conftest import Lines, Work
from tests.worker.test_notifications import note
from tests.worker.test_subscriptions import RunningJobs, fill, stage

__all__ = ["stage"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the files of the test by themselves."""
    monkeypatch.setattr(process_files, "PARENT", tmp_path)
    monkeypatch.setattr(job_recovery, "INTERVAL", 0.01)
    return tmp_path / f"aioqless-{os.getuid()}"


def leave_file(client: Client, worker: str, id: str = "former") -> ProcessFile:
    """Leave the file of a worker; it ends when the file is unlocked."""
    file = ProcessFile.create(group_of(client.url or "", client.namespace), id, worker)
    assert file
    return file


def files_in(folder: Path) -> list[str]:
    """Return the names of the files of workers."""
    return [file.name for file in folder.glob("*/*")]


async def test_starting_worker_runs_the_jobs_of_an_ended_one(
    client: Client, work: Work, until: Until, stage: RunningJobs, lines: Lines, folder: Path
) -> None:
    await fill(client, "mail", 2)
    await client.queue("mail").pop(2, worker="former-1")
    file = leave_file(client, "former-1")
    file.unlock()
    async with work(stage.handler, shutdown_timeout=0):
        await until(lambda: len(stage.running) == 2)
        assert not file.path.exists()
        assert lines.of("worker.recovered", of="former-1", jobs=2)
        job = await client.jobs.get("mail0")
        assert job and job.remaining == job.retries
        listed = {each.name: each.jobs for each in await client.workers.counts()}
        assert listed["former-1"] == 0, "the dashboard tells that it disappeared"


async def test_worker_goes_on_where_no_file_can_be_deleted(
    client: Client,
    work: Work,
    until: Until,
    stage: RunningJobs,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await fill(client, "mail", 1)
    await client.queue("mail").pop(1, worker="former-1")
    leave_file(client, "former-1").unlock()
    tried: list[Path] = []

    def refuse(self: Path, missing_ok: bool = False) -> None:
        tried.append(self)
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "unlink", refuse)
    async with work(stage.handler, shutdown_timeout=0):
        await until(lambda: stage.running and len(tried) > 1)


async def test_running_worker_notices_that_another_one_ends(
    client: Client, work: Work, until: Until, stage: RunningJobs, lines: Lines
) -> None:
    await fill(client, "mail", 1)
    await client.queue("mail").pop(worker="former-1")
    file = leave_file(client, "former-1")
    async with work(stage.handler, shutdown_timeout=0):
        await until(lambda: lines.of("worker.started"))
        assert not stage.running
        file.unlock()
        await until(lambda: list(stage.running) == ["mail0"])


async def test_jobs_of_a_name_that_another_process_has_by_now_are_left_to_it(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    await fill(client, "post", 1)
    await client.queue("post").pop(worker="ann")
    process = '{"id": "another", "host": "elsewhere", "pid": 1}'
    await client.internals.store.name_lease_claim(worker="ann", process=process)
    file = leave_file(client, "ann")
    file.unlock()
    async with work(note):
        await until(lambda: lines.of("worker.started"))
        assert not file.path.exists() and not lines.of("worker.recovered")
    job = await client.jobs.get("post0")
    assert job and job.state == "running"


async def test_files_of_other_namespaces_are_left_alone(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    file = ProcessFile.create(group_of(client.url or "", "another"), "former", "ann")
    assert file
    file.unlock()
    async with work(note):
        await until(lambda: lines.of("worker.started"))
        assert file.path.exists()


async def test_file_is_kept_while_redis_is_away(
    own_server: Any, lines: Lines, until: Until
) -> None:
    async with Client(own_server.url) as client:
        file = leave_file(client, "former-1")
        file.unlock()
        own_server.kill()
        async with Worker(client, note):
            await until(lambda: lines.of("worker.redis_lost"))
            assert file.path.exists()
            own_server.start()
            await until(
                lambda: lines.of("worker.recovered", of="former-1") and not file.path.exists()
            )


async def test_worker_without_redis_gets_the_name_of_an_ended_one_when_it_is_back(
    own_server: Any, lines: Lines, until: Until
) -> None:
    async with Client(own_server.url) as client:
        process = json.dumps({"id": "former", "host": "another", "pid": 1})
        await client.internals.store.name_lease_claim(worker="ann", process=process)
        leave_file(client, "ann").unlock()
        own_server.kill()
        async with Worker(client, note, name="ann"):
            await until(lambda: lines.of("worker.redis_lost"))
            own_server.start()
            await until(lambda: lines.of("worker.recovered", of="ann"))


async def test_worker_leaves_no_file_behind(
    client: Client, work: Work, until: Until, lines: Lines, folder: Path
) -> None:
    async with work(note):
        await until(lambda: lines.of("worker.started"))
        assert len(files_in(folder)) == 1
    assert files_in(folder) == [], "and no folder"


@pytest.fixture
def no_folder(folder: Path) -> None:
    """Let the folder be a file."""
    folder.write_text("not a folder")


@pytest.mark.usefixtures("no_folder")
async def test_worker_works_where_no_file_can_be_created(
    client: Client, work: Work, until: Until, stage: RunningJobs
) -> None:
    await fill(client, "mail", 1)
    async with work(stage.handler, shutdown_timeout=0):
        await until(lambda: list(stage.running) == ["mail0"])
