"""Schedules and foreign queues combined with bursts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.foreign_queues import ForeignQueues
from aioqless.testing import Clock, run_jobs

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()


async def test_burst_declares_schedules_and_runs_due_jobs(
    clock_client: Client, clock: Clock
) -> None:
    ran: list[str] = []

    @job(klass="Nightly", cron="0 12 * * *", queue="default")
    async def nightly(job: Job[Any]) -> None:
        ran.append(job.jid)

    clock.now = NOON - 60
    await run_jobs(clock_client, nightly)
    assert ran == [] and (await clock_client.recurring.get("Nightly")).next == NOON
    clock.move(60)
    await run_jobs(clock_client, nightly)
    assert ran == ["Nightly-1"]


async def test_burst_imports_jobs_of_foreign_queues(client: Client) -> None:
    @job(klass="Hard")
    async def hard(job: Job[Any]) -> None: ...

    prefix = f"{client.namespace}-exq"
    entries = [f'{{"class": "Hard", "jid": "{n}", "args": []}}' for n in range(250)]
    await client.redis.lpush(f"{prefix}:queue:mail", *entries)
    await client.redis.sadd(f"{prefix}:queues", "mail")
    settings = Settings(queues=("mail",), burst=True)
    parts = [ForeignQueues(format="exq", prefix=prefix)]
    await Worker(client, hard, settings=settings, parts=parts).run()
    assert (
        await client.queue("mail").length() == 0
        and len(await client.jobs.complete_jids(count=1000)) == 250
    )
