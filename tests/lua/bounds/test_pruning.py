"""Old statistics are pruned in bounded steps."""

import math

from tests.lua.bounds.many_jobs import A_MOMENT, FAILURE, FULL, MANY, MOST, Gauge, bind, crowd
from tests.lua.story import Story


async def test_statistics_of_years_are_pruned_in_bounded_calls(story: Story, gauge: Gauge) -> None:
    today = A_MOMENT - A_MOMENT % 86_400
    days = [today - 86_400 * back for back in range(1, 3_000 if FULL else 400)]
    for day in days:
        for kind in ("wait", "run"):
            await story.change(
                "HSET",
                f"s:{kind}:{day}:mail",
                "total",
                3,
                "mean",
                1.5,
                "vk",
                2,
                "s1",
                2,
                "s2",
                1,
                "s-7",
                1,
            )
        await story.change("HSET", f"s:stats:{day}:mail", "failures", 1)
    await story.change("ZADD", "queues", days[-1], "mail")
    await story.put("a", A_MOMENT - 86_400, queue="used")
    while (await story.reviewed("statistics") or math.inf) <= A_MOMENT:
        await gauge("agenda", now=A_MOMENT)
    left = [
        key.decode().split(":")[2:4]
        async for key in story.redis.scan_iter(story.key("s:*"), 10_000)
    ]
    assert {int(day) for _, day in left} == {today - 86_400 * back for back in range(1, 30)}
    for back in range(1, 30):
        kept = await story.fields(f"s:wait:{today - 86_400 * back}:mail")
        assert kept == {"total": "3", "mean": "1.5", "vk": "2"} | (
            {"s1": "2", "s2": "1", "s-7": "1"} if back < 7 else {}
        )
    assert gauge.most <= 400 * 6 + 100


async def test_statistics_of_unused_queues_are_pruned_in_bounded_calls(
    story: Story, gauge: Gauge
) -> None:
    many, first = 2_000 if FULL else 300, A_MOMENT - A_MOMENT % 86_400 - 100 * 86_400
    for number in range(many):
        for day in (first, first + 20 * 86_400):
            await story.change(
                "HSET", f"s:run:{day}:q{number}", "total", 3, "mean", 1.5, "vk", 2, "s1", 2, "s2", 1
            )
        await story.change("ZADD", "queues", first, f"q{number}")
    await story.put("a", A_MOMENT - 86_400, queue="used")
    while (await story.reviewed("statistics") or math.inf) <= A_MOMENT:
        await gauge("agenda", now=A_MOMENT)
    assert not [key async for key in story.redis.scan_iter(story.key("s:*"))]
    assert set(await story.scores("queues")) == {"used"}
    assert gauge.most <= 400 * 6 + 100


async def test_pruned_day_of_a_failure_leaves_no_counter(story: Story, gauge: Gauge) -> None:
    await story.failed("a")
    await story.change("DEL", "s:stats:0:mail")
    assert await gauge("unfail", queue="mail", group="typo", now=A_MOMENT) == 1
    assert not await story.exists("s:stats:0:mail")


async def test_pop_of_many_empty_queues_is_cheap(story: Story, gauge: Gauge) -> None:
    await crowd(story, 2_000, "q:last-work", "waiting", queue="last")
    batch = [{"queue": f"q{number}"} for number in range(MOST - 1)] + [{"queue": "last"}]
    for order in ("rotation", "ordered"):
        assert (
            len(
                (
                    await gauge(
                        "pop_many", worker="ann", count=MOST, now=A_MOMENT, order=order, batch=batch
                    )
                )[0]
            )
            == MOST
        )
    assert gauge.most <= MOST * 40


async def test_check_reads_large_keys_in_small_steps(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-depends", "depends", tags='["x"]')
    await crowd(story, MANY, "t:x", "depends", tags='["x"]')
    await story.change("ZADD", "tags", MANY, "x")
    await crowd(story, MANY, "f:typo", "failed", prefix="failed", failure=FAILURE)
    await story.change("SADD", "failures", "typo")
    await story.put("hub", 0, queue="post")
    await bind(story, MANY, dependents=True)
    cursor = ""
    while cursor != "0":
        reply = await gauge("check", now=1, cursor=cursor)
        assert (reply["found"], reply["examined"] < 400) == ([], True)
        cursor = reply["cursor"]
    assert gauge.most <= 250 * 5
