"""Workers that end by themselves: burst mode, max_jobs and max_memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client, Job, NewJob, job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


@job(klass="Note")
async def note(job: Job[Any]) -> None: ...


async def test_burst_ends_when_nothing_is_ready_despite_scheduled_dependent_and_paused_jobs(
    client: Client, work: Work, until: Until
) -> None:
    mail = client.queue("mail")
    await mail.put_many(NewJob("Note", jid=f"{n}") for n in range(50))
    await mail.put("Note", jid="later", delay=600)
    await mail.put("Note", jid="held", depends=["later"])
    await client.queue("quiet").put("Note", jid="quiet")
    await client.queue("quiet").pause()
    async with work(note, queues=("mail", "quiet"), burst=True, concurrency=3) as worker:
        await until(lambda: not worker.healthy)
    counts = {each.name: each for each in await client.queues()}
    assert (counts["mail"].waiting, counts["mail"].scheduled, counts["mail"].depends) == (
        0,
        1,
        1,
    )
    assert counts["quiet"].waiting == 1 and len(await client.jobs.complete_jids(count=100)) == 50


async def test_burst_runs_jobs_that_its_last_job_puts(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Chain")
    async def chain(job: Job[int]) -> None:
        await asyncio.sleep(0.02)  # longer than the pop that runs meanwhile
        if job.data:
            await client.queue("mail").put("Chain", job.data - 1)

    await client.queue("mail").put("Chain", 3)
    async with work(chain, burst=True) as worker:
        await until(lambda: not worker.healthy)
    assert len(lines.of("job.completed")) == 4


async def test_worker_starts_at_most_max_jobs_and_finishes_them(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    await client.queue("mail").put_many(NewJob("Note", jid=f"{n}") for n in range(20))
    async with work(note, max_jobs=7) as worker:
        await until(lambda: not worker.healthy)
        assert worker.recycling
    assert (len(lines.of("job.completed")), len(await client.queue("mail").jids("waiting"))) == (
        7,
        13,
    )


async def test_worker_above_max_memory_ends_after_a_job(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    async with work(note, max_memory=1, poll=0.01) as worker:
        await until(lambda: worker.ready)
        assert worker.healthy
        await client.queue("mail").put("Note")
        await until(lambda: not worker.healthy)
    assert (
        lines.of("worker.recycling")[0]["why"].endswith("MiB")
        and len(lines.of("job.completed")) == 1
    )


@pytest.mark.parametrize("ends", ["returns", "raises", "is cancelled"])
async def test_scratch_directory_is_deleted_however_its_job_ends(
    client: Client, work: Work, until: Until, lines: Lines, ends: str
) -> None:
    found: list[Path] = []

    @job(klass="Files", timeout=1 if ends == "is cancelled" else 60)
    async def files(job: Job[Any]) -> None:
        async with job.scratch() as folder:
            (folder / "file").write_text("text")
            found.append(folder)
            if ends == "raises":
                raise ValueError
            if ends == "is cancelled":
                await asyncio.Event().wait()

    await client.queue("mail").put("Files", jid="a/../b c")
    async with work(files):
        await until(lambda: lines.of("job.completed") or lines.of("job.failed"))
    assert found[0].name.startswith("aioqless-a_.._b_c-") and not found[0].exists()


async def test_scratch_directory_of_a_plain_function_is_deleted(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    found: list[Path] = []

    @job(klass="Files")
    def files(job: Job[Any]) -> None:
        with job.scratch() as folder:
            (folder / "deep" / "er").mkdir(parents=True)
            found.append(folder)

    await client.queue("mail").put("Files")
    async with work(files):
        await until(lambda: lines.of("job.completed"))
    assert not found[0].exists()
