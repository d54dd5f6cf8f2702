"""Many jobs, templates or locks that become due at once have a bounded cost per call."""

from tests.lua.bounds.many_jobs import (
    A_MOMENT,
    AN_INTERVAL_LONG,
    MANY,
    Gauge,
    count,
    crowd,
    is_sound,
)
from tests.lua.story import Story


async def test_template_missed_for_a_day_makes_one_instance(story: Story, gauge: Gauge) -> None:
    await story.recur("hourly", A_MOMENT, interval=1)
    assert (
        len(
            await gauge(
                "pop", queue="mail", worker="ann", count=100, now=A_MOMENT + AN_INTERVAL_LONG
            )
        )
        == 1
    )
    assert (
        await gauge("pop", queue="mail", worker="ann", count=100, now=A_MOMENT + AN_INTERVAL_LONG)
        == []
    )
    assert await story.scores("q:mail-recur") == {"hourly": A_MOMENT + AN_INTERVAL_LONG + 1}
    assert gauge.most <= 250


async def test_template_of_another_client_makes_up_for_missed_intervals_in_batches(
    story: Story, gauge: Gauge
) -> None:
    await story.recur("hourly", A_MOMENT, interval=1, backlog=0)
    times = []
    while jobs := await gauge(
        "pop", queue="mail", worker="ann", count=700, now=A_MOMENT + AN_INTERVAL_LONG
    ):
        assert len(jobs) <= 700
        times += [job["history"][0]["when"] for job in jobs]
    assert times == [A_MOMENT + second for second in range(AN_INTERVAL_LONG + 1)]
    assert gauge.most <= 200 + 25 * 700
    assert await is_sound(story, A_MOMENT + AN_INTERVAL_LONG)


async def test_ticks_are_returned_in_batches(story: Story, gauge: Gauge) -> None:
    for number in range(150):
        await story.cron(f"r{number:03}", 0, next=number + 1)
    first = await gauge("tick", now=1000, batch=[])
    assert [each["jid"] for each in first["due"]] == [f"r{number:03}" for number in range(100)]
    made = await gauge(
        "tick",
        now=1000,
        batch=[
            {"jid": each["jid"], "tick": each["tick"], "at": 999, "next": 2000}
            for each in first["due"]
        ],
    )
    assert len(made["made"]) == 100
    assert [each["jid"] for each in made["due"]] == [f"r{number:03}" for number in range(100, 150)]
    assert gauge.most <= 2_000


async def test_templates_are_listed_in_pages(story: Story, gauge: Gauge) -> None:
    for number in range(30):
        await story.cron(f"r{number:03}", 0, next=number + 1)
    assert len(await gauge("recurring")) == 25
    assert len(await gauge("recurring", count=5_000)) == 30
    assert gauge.most <= 200


async def test_template_makes_up_for_missed_intervals_up_to_its_backlog(
    story: Story, gauge: Gauge
) -> None:
    await story.recur("hourly", A_MOMENT, interval=1, backlog=50)
    jobs = await gauge(
        "pop", queue="mail", worker="ann", count=1_000, now=A_MOMENT + AN_INTERVAL_LONG
    )
    assert [job["history"][0]["when"] - A_MOMENT for job in jobs] == list(
        range(AN_INTERVAL_LONG - 50, AN_INTERVAL_LONG + 1)
    )
    assert gauge.most <= 200 + 25 * 51


async def test_template_put_again_skips_jids_in_use(story: Story, gauge: Gauge) -> None:
    await story.recur("hourly", A_MOMENT, interval=1)
    await crowd(story, 1_001, "q:mail-work", "waiting", prefix="hourly-", data='"older"')
    for _ in range(11):
        await gauge("peek", queue="mail", count=1, now=A_MOMENT)
    assert gauge.most <= 350
    assert await count(story, "q:mail-work") == 1_002
    assert (await story.job("hourly-1001"))["data"] == "{}"
    assert (await story.job("hourly-1000"))["data"] == '"older"'


async def test_many_due_jobs_are_moved_as_requested(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-scheduled", "scheduled", score=1, step=0.001)
    at = A_MOMENT
    assert len(await gauge("pop", queue="mail", worker="ann", count=10, now=at)) == 10
    assert await count(story, "q:mail-scheduled") == MANY - 10
    assert gauge.most <= 10 * 20 + 150
    popped = 10
    while jobs := await gauge("pop", queue="mail", worker="ann", count=1_000, now=at):
        popped += len(jobs)
    assert popped == MANY
    assert gauge.most <= 1_000 * 18 + 150
    assert await is_sound(story, at)


async def test_many_expired_locks_are_handled_as_jobs_are_requested(
    story: Story, gauge: Gauge
) -> None:
    size = min(MANY, 20_000)
    await crowd(
        story,
        size,
        "q:mail-locks",
        "running",
        score=1,
        step=0.001,
        worker="ann",
        expires=1,
        remaining=0,
    )
    await crowd(story, size, "w:ann:jobs", "running", worker="ann", expires=1, remaining=0)
    at = 1_000_000.0
    assert await gauge("pop", queue="mail", worker="bob", count=10, now=at) == []
    assert (
        len(
            [
                jid
                for jid in await story.scores("q:mail-locks")
                if await story.change("HEXISTS", f"j:{jid}", "grace")
            ]
        )
        == 10
    )
    assert gauge.most <= 10 * 20 + 150
    for _ in range(size // 1_000 + 1):
        await gauge("pop", queue="mail", worker="bob", count=1_000, now=at)
    for _ in range(size // 1_000 + 1):
        await gauge("pop", queue="mail", worker="bob", count=1_000, now=at + 11)
    assert await story.store.failed() == {"failed-retries-mail": size}
    assert not await story.exists("q:mail-locks")
    assert gauge.most <= 1_000 * 25 + 150
    assert await is_sound(story, at)


async def test_silent_workers_are_deregistered_a_few_per_call(story: Story, gauge: Gauge) -> None:
    for number in range(100):
        await story.change("ZADD", "workers", number, f"w{number}")
        await story.change("ZADD", f"w:w{number}:jobs", 1, f"j{number}")
    for left in range(90, -1, -10):
        await gauge("pop", queue="mail", worker="ann", count=1, now=A_MOMENT)
        assert await count(story, "workers") == left + 1
    assert not [key async for key in story.redis.scan_iter(story.key("w:*"))]
    assert gauge.most <= 80
