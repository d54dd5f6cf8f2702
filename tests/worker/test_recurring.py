"""Recurring jobs with cron expressions, put by workers."""

import time
from collections import Counter
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless import Client, Job, job
from aioqless.worker.parts.scheduler import DueTemplate, due_instances
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Work
from tests.worker.test_notifications import no_calls

A_SECOND = "* * * * * *"


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


async def test_one_of_many_workers_puts_the_instance_of_a_tick(
    client: Client, redis_url: str, work: Work, until: Until, lines: Lines
) -> None:
    ran: Counter[str] = Counter()

    @job
    async def tick(job: Job) -> None:
        ran[job.jid] += 1

    await client.queue("mail").recur(tick, cron=A_SECOND, jid="tick")
    async with (
        Client(redis_url, namespace=client.namespace) as second,
        Client(redis_url, namespace=client.namespace) as third,
        work(tick),
        work(tick, using=second),
        work(tick, using=third),
    ):
        await until(lambda: len(ran) >= 3)
    assert set(ran.values()) == {1}
    made = [line["jid"] for line in lines.of("recurring.triggered")]
    assert made == [f"tick-{number}" for number in range(1, len(made) + 1)]


@pytest.mark.parametrize(("backlog", "made"), [(None, 1), (3, 3), (0, 60)])
async def test_missed_ticks_are_coalesced_or_replayed_up_to_the_backlog(
    client: Client, work: Work, until: Until, lines: Lines, backlog: int | None, made: int
) -> None:
    @job
    async def minutely(job: Job) -> None: ...

    options: Any = {} if backlog is None else {"backlog": backlog}
    await client.queue("mail").recur(minutely, cron="* * * * *", jid="r", **options)
    since = (await client.internals.store.now()) // 60 * 60 - 59 * 60
    await client.internals.store.recur_update(jid="r", pairs=["next", str(since)])
    async with work(minutely):
        await until(lambda: len(lines.of("job.completed")) >= made)
        recurring = await client.recurring.get("r")
    assert recurring is not None and recurring.count in (made, made + 1)
    assert recurring.next is not None and recurring.next > since + 59 * 60


async def test_recurring_job_with_an_unreadable_schedule_is_logged_once_and_stops_no_other(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job
    async def good(job: Job) -> None: ...

    given: dict[str, Any] = {"queue": "mail", "klass": good.klass, "data": "null", "next": 5}
    await client.internals.store.recur_cron(
        jid="martian", expression="0 0 * * *", timezone="Mars/Olympus", **given
    )
    await client.internals.store.recur_cron(
        jid="old", expression="garbage", timezone="UTC", **given
    )
    await client.internals.store.recur_cron(
        jid="good", expression=A_SECOND, timezone="UTC", **given
    )
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

    await client.internals.store.recur_cron(
        jid="r",
        expression=A_SECOND,
        timezone="UTC",
        queue="mail",
        klass=tick.klass,
        data="null",
        next=5,
    )
    async with work(tick, scheduler=False) as worker:
        await idle(worker)
        assert (await client.redis.pubsub_numsub(f"{client.namespace}:x:ticks-changed"))[0][1] == 0
        async with work(tick, queues=("other",)):
            await until(lambda: lines.of("job.completed"))
    assert len(lines.of("recurring.triggered")) >= 1


async def test_instances_in_a_paused_queue_wait_until_it_is_resumed(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job
    async def tick(job: Job) -> None: ...

    queue = client.queue("mail")
    await queue.pause()
    await queue.recur(tick, cron=A_SECOND, jid="r")
    async with work(tick):
        await until(lambda: len(lines.of("recurring.triggered")) >= 2)
        assert not lines.of("job.started")
        await queue.resume()
        await until(lambda: len(lines.of("job.completed")) >= 2)


async def test_retried_instance_does_not_delay_the_next(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(retry_on=(OSError,), backoff=lambda used: 60)
    async def flaky(job: Job) -> None:
        if job.jid == "r-1":
            raise OSError("no route")

    await client.queue("mail").recur(flaky, cron=A_SECOND, jid="r")
    async with work(flaky):
        await until(lambda: lines.of("job.completed", jid="r-2"))
    assert await client.queue("mail").jids("scheduled") == ["r-1"]


async def test_instances_overlap_if_a_run_is_longer_than_the_interval(
    client: Client, work: Work, until: Until
) -> None:
    running: set[str] = set()

    @job
    async def slow(job: Job) -> None:
        running.add(job.jid)
        await until(lambda: len(running) >= 2)

    await client.queue("mail").recur(slow, cron=A_SECOND, jid="r")
    async with work(slow):
        await until(lambda: len(running) >= 2)


async def test_instance_waits_for_the_former_in_a_queue_with_max_concurrency_1(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    running = most = 0

    @job
    async def slow(job: Job) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await until(lambda: len(lines.of("recurring.triggered")) >= 3)
        running -= 1

    await client.config.set("mail-max-concurrency", 1)
    await client.queue("mail").recur(slow, cron=A_SECOND, jid="r")
    async with work(slow, poll=0.05):
        await until(lambda: len(lines.of("job.completed")) >= 3)
    assert most == 1


async def test_idle_scheduler_without_cron_jobs_polls_rarely_or_when_notified(
    client: Client, work: Work, idle: Idle, until: Until
) -> None:
    @job
    async def nothing(job: Job) -> None: ...

    async with work(nothing) as worker:
        await idle(worker)
        await until(lambda: no_calls(client))


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

    await client.internals.store.recur_cron(
        jid="r",
        expression=A_SECOND,
        timezone="UTC",
        queue="mail",
        klass=tick.klass,
        data="null",
        next=5,
    )
    try:
        await redis.config_set("maxmemory", 1)
        async with work(tick):
            await until(lambda: lines.of("recurring.blocked"))
            assert not lines.of("recurring.triggered")
            await redis.config_set("maxmemory", 0)
            await until(lambda: lines.of("job.completed"))
    finally:
        await redis.config_set("maxmemory", 0)


async def test_max_runs_is_exact_with_several_workers(
    client: Client, redis_url: str, work: Work, until: Until
) -> None:
    ran: Counter[str] = Counter()

    @job(klass="Tick", queue="mail", every=0.02, max_runs=5)
    async def tick(job: Job) -> None:
        ran[job.jid] += 1

    @job(klass="Tock", queue="mail", cron=A_SECOND, max_runs=1)
    async def tock(job: Job) -> None:
        ran[job.jid] += 1

    async def ended(jid: str) -> bool:
        found = await client.recurring.get(jid)
        return found is not None and found.ended

    async with (
        Client(redis_url, namespace=client.namespace) as second,
        work(tick, tock, poll=0.01),
        work(tick, tock, using=second, poll=0.01),
    ):
        await until(lambda: ended("Tick"))
        await until(lambda: ended("Tock"))
        async with work(tick, tock, poll=0.01):  # which declares them again
            await until(lambda: len(ran) == 6)
    assert sorted(ran) == [*(f"Tick-{n}" for n in range(1, 6)), "Tock-1"]
    assert set(ran.values()) == {1}


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
