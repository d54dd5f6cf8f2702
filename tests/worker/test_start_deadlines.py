"""Jobs past their start deadline, which a worker does not run."""

from __future__ import annotations

from typing import Any

from aioqless import Client, Job, job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

ran: list[str] = []


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


async def test_job_put_again_has_no_start_deadline(
    client: Client, work: Work, until: Until
) -> None:
    ran.clear()
    mail = client.queue("mail")
    await mail.put(known, jid="a", expires_in=0)
    await mail.put(known, jid="a")
    async with work(known):
        await until(lambda: ran == ["a"])
