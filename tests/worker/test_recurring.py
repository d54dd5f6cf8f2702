"""Recurring jobs with cron expressions, put by workers."""

import time

import pytest
from redis.asyncio import Redis

from aioqless import Client, Job, job
from aioqless.worker.parts.scheduler import DueTemplate, due_instances
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Work

A_SECOND = "* * * * * *"


async def recur(
    client: Client, klass: str, *, jid: str, expression: str = A_SECOND, timezone: str = "UTC"
) -> None:
    """Store a template that was due long ago, past the client, which refuses wrong schedules."""
    await client.internals.store.recur_cron(
        jid=jid,
        expression=expression,
        timezone=timezone,
        queue="mail",
        klass=klass,
        data="null",
        next=5,
    )


async def test_idle_worker_runs_a_cron_job_on_time(
    client: Client, work: Work, idle: Idle, until: Until
) -> None:
    ran: list[float] = []

    @job
    async def each_second(job: Job) -> None:
        ran.append(time.time())

    async with work(each_second) as worker:
        await idle(worker)
        began = time.time()
        recurring = await client.queue("mail").recur(each_second, cron=A_SECOND, jid="r")
        # the quickest tells how late they are; the others tell how busy this machine is
        await until(lambda: len(ran) >= 3 and min(moment % 1 for moment in ran) < 0.1)
        await recurring.cancel()
    assert len(ran) <= int(ran[-1]) - int(began), "one a second"


async def test_recurring_job_with_an_unreadable_schedule_is_logged_once_and_stops_no_other(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job
    async def good(job: Job) -> None: ...

    await recur(client, good.klass, jid="martian", timezone="Mars/Olympus")
    await recur(client, good.klass, jid="old", expression="garbage")
    await recur(client, good.klass, jid="good")
    async with work(good):
        await until(lambda: len(lines.of("job.completed")) >= 2)
    told = {line["recurring"]: line["why"] for line in lines.of("recurring.refused")}
    assert len(lines.of("recurring.refused")) == 2
    assert "timezone 'Mars/Olympus' is not known here" in told["martian"]
    assert "can't be read" in told["old"]


async def test_worker_without_scheduler_puts_no_instances(
    client: Client, work: Work, idle: Idle, until: Until, lines: Lines
) -> None:
    @job
    async def tick(job: Job) -> None: ...

    await recur(client, tick.klass, jid="r")
    async with work(tick, scheduler=False) as worker:
        await idle(worker)
        assert (await client.redis.pubsub_numsub(f"{client.namespace}:x:ticks-changed"))[0][1] == 0
        async with work(tick, queues=("other",)):
            await until(lambda: lines.of("job.completed"))
    assert len(lines.of("recurring.triggered")) >= 1


async def test_tick_waits_while_redis_is_full(
    client: Client,
    redis: Redis,
    work: Work,
    until: Until,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.worker.parts.scheduler.PAUSE_WHEN_FULL", 0.01)

    @job
    async def tick(job: Job) -> None: ...

    await recur(client, tick.klass, jid="r")
    try:
        await redis.config_set("maxmemory", 1)
        async with work(tick):
            await until(lambda: lines.of("recurring.blocked"))
            assert not lines.of("recurring.triggered")
            await redis.config_set("maxmemory", 0)
            await until(lambda: lines.of("job.completed"))
    finally:
        await redis.config_set("maxmemory", 0)


def test_missed_ticks_after_the_end_are_left_out() -> None:
    due: DueTemplate = {
        "jid": "r",
        "cron": "* * * * *",
        "timezone": "UTC",
        "tick": 60,
        "backlog": None,
        "until": 200,
    }
    assert due_instances(due, 1000) == [{"jid": "r", "tick": 60, "at": 180, "next": 240}]


def test_long_backlog_is_put_in_batches() -> None:
    def due(backlog: int | None) -> DueTemplate:
        every_minute, timezone = "* * * * *", "UTC"
        return {
            "jid": "r",
            "cron": every_minute,
            "timezone": timezone,
            "tick": 0,
            "backlog": backlog,
            "until": None,
        }

    every = due_instances(due(0), 1_000_000)
    assert len(every) == 100
    assert [(row["tick"], row["at"], row["next"]) for row in every[:2]] == [
        (0, 0, 60),
        (60, 60, 120),
    ]
    once = due_instances(due(None), 125)
    assert once == [{"jid": "r", "tick": 0, "at": 120, "next": 180}]
    two = due_instances(due(2), 125)
    assert [(row["tick"], row["at"], row["next"]) for row in two] == [(0, 60, 120), (120, 120, 180)]
