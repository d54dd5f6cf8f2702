"""Jobs past their start deadline, which a worker does not run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aioqless import Client, Job, job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

ran: list[str] = []


@job(expires_in=timedelta(seconds=0), cron="* * * * * *")
async def brief(job: Job) -> None:
    ran.append(job.jid)


@job(klass="Known")
async def known(job: Job[Any]) -> None:
    ran.append(job.jid)


async def test_job_past_its_start_deadline_fails_without_a_run(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    ran.clear()
    mail = client.queue("mail")
    await mail.put(known, jid="late", expires_in=0)
    await mail.put(known, jid="timely", expires_in=600)
    await mail.put_many([known.data()])
    async with work(known):
        await until(lambda: lines.of("job.failed", jid="late", group="mail-expired"))
        await until(lambda: len(ran) == 2)
    assert "timely" in ran and "late" not in ran
    late = await client.jobs.get("late")
    assert late and late.failure and late.failure.group == "mail-expired" and late.expiry


async def test_handler_says_in_what_time_its_jobs_must_start(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    ran.clear()
    await client.put(brief.data(), jid="late")
    await client.put(brief.data(), jid="timely", expires_in=600)
    async with work(brief, queues=["default"], scheduler=False):
        await until(lambda: lines.of("job.failed", jid="late", group="default-expired"))
        await until(lambda: ran == ["timely"])


async def test_instances_of_a_recurring_job_must_start_in_time(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    ran.clear()
    hourly = await client.recur(known, every=3600, jid="hourly", expires_in=timedelta(minutes=5))
    assert hourly.expires_in == 300
    await hourly.update(expires_in=0)
    async with work(known, brief, queues=["default"]):
        await until(lambda: lines.of("job.failed", jid="hourly-1", group="default-expired"))
        await until(lambda: lines.of("job.failed", jid=f"{brief.klass}-1"))
    assert ran == []
    await hourly.update(expires_in=None)
    assert hourly.expires_in is None
