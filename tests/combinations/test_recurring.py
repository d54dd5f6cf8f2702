"""Recurring jobs combined with pauses, bursts, restarts, retries and timeouts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from aioqless import Client, Job, Retry, Settings, Worker, job
from aioqless.contrib.foreign_queues import ForeignQueues
from aioqless.testing import Clock, drain
from tests.combinations.conftest import existing_job, states
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()


async def test_missed_times_in_a_paused_queue_are_made_up_by_kind_of_schedule(
    clock_client: Client, clock: Clock
) -> None:
    ran: list[str] = []

    @job(klass="Note")
    async def note(job: Job[Any]) -> None:
        ran.append(job.jid.rpartition("-")[0])

    clock.now = NOON
    queue = clock_client.queue("default")
    await queue.recur(note, every=60, offset=60, jid="interval")
    await queue.recur(note, cron="* * * * *", jid="cron")
    await queue.pause()
    for _ in range(3):
        clock.move(60)
        await drain(clock_client, note)
    assert ran == []
    await queue.resume()
    await drain(clock_client, note)
    assert sorted(ran) == ["cron", "cron", "cron", "interval"]
    clock.move(60)
    await drain(clock_client, note)
    assert sorted(ran[4:]) == ["cron", "interval"]


async def test_burst_declares_schedules_and_runs_due_jobs(
    clock_client: Client, clock: Clock
) -> None:
    ran: list[str] = []

    @job(klass="Nightly", cron="0 12 * * *", queue="default")
    async def nightly(job: Job[Any]) -> None:
        ran.append(job.jid)

    clock.now = NOON - 60
    await drain(clock_client, nightly)
    assert ran == [] and (await clock_client.recurring.get("Nightly")).next == NOON
    clock.move(60)
    await drain(clock_client, nightly)
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


async def test_each_tick_makes_one_instance_although_workers_restart(
    clock_client: Client, clock: Clock
) -> None:
    ran: list[str] = []

    @job(klass="Nightly", cron="0 * * * *", queue="default")
    async def nightly(job: Job[Any]) -> None:
        ran.append(job.jid)

    clock.now = NOON
    await drain(clock_client, nightly)
    async with Client(clock_client.url, namespace=clock_client.namespace, clock=clock) as other:
        for number in range(1, 4):
            clock.move(3600)
            await asyncio.gather(drain(clock_client, nightly), drain(other, nightly))
            assert ran == [f"Nightly-{n}" for n in range(1, number + 1)]


async def test_unique_instance_that_waits_for_a_retry_prevents_the_next(
    clock_client: Client, clock: Clock
) -> None:
    @job(klass="Sweep", every=60, unique=(), queue="default")
    async def sweep(job: Job[Any]) -> None:
        if job.remaining == job.retries:
            raise Retry(delay=150)

    await drain(clock_client, sweep)
    for made in (1, 1, 1, 1, 2):
        clock.move(60)
        await drain(clock_client, sweep)
        assert (await clock_client.recurring.get("Sweep")).count == made
    assert await states(clock_client, "Sweep-1", "Sweep-2") == ["complete", "scheduled"]
    await clock_client.jobs.cancel("Sweep-2")


async def test_instances_keep_the_concurrency_limit_of_their_handler(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    going = most = 0

    @job(klass="Sweep", max_concurrency=1)
    async def sweep(job: Job[Any]) -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(0.02)
        going -= 1

    recurring = await client.queue("mail").recur(sweep, every=3600, offset=3600, jid="sweep")
    jids = [await recurring.run_now() for _ in range(4)]
    async with work(sweep):
        await until(lambda: len(lines.of("job.completed")) == 4)
    assert most == 1 and [line["jid"] for line in lines.of("job.completed")] == jids


async def test_failed_instance_can_be_unfailed(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    fails = True

    @job(klass="Sweep", unique=())
    async def sweep(job: Job[Any]) -> None:
        if fails:
            raise ValueError

    recurring = await client.queue("mail").recur(sweep, every=3600, offset=3600, jid="sweep")
    first = await recurring.run_now()
    async with work(sweep):
        await until(lambda: lines.of("job.failed"))
        second = await recurring.run_now()
        await until(lambda: len(lines.of("job.failed")) == 2)
        fails = False
        assert await client.queue("mail").unfail("mail-ValueError") == 2
        await until(lambda: len(lines.of("job.completed")) == 2)
    assert (
        (await existing_job(client, first)).spawned_from
        == (await existing_job(client, second)).spawned_from
        == "sweep"
    )
