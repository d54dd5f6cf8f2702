"""stats: statistics of a queue for a day."""

import math
from typing import Any

import pytest

from tests.lua.check.all_states import findings
from tests.lua.story import Story

DAY = 86400


async def _stats(story: Story, date: float = 0, queue: str = "mail") -> Any:
    return await story.store.stats(queue=queue, date=date)


@pytest.mark.parametrize(
    ("seconds", "bin_name", "position"),
    [
        (0, "s0", 0),
        (0.9, "s0", 0),
        (59.9, "s59", 59),
        (60, "m1", 60),
        (3599, "m59", 118),
        (3600, "h1", 119),
        (DAY - 1, "h23", 141),
        (DAY, "d1", 142),
        (6 * DAY, "d6", 147),
        (7 * DAY, "d7", None),
        (-0.5, "s-1", None),
    ],
)
async def test_histogram_has_seconds_then_minutes_then_hours_then_days(
    story: Story, seconds: float, bin_name: str, position: int | None
) -> None:
    await story.running("a", 10 * DAY - seconds, 10 * DAY)
    assert (await story.day("wait", day=10 * DAY))[bin_name] == "1"
    histogram = (await _stats(story, 10 * DAY))["wait"]["histogram"]
    assert len(histogram) == 148
    assert [place for place, count in enumerate(histogram) if count] == (
        [] if position is None else [position]
    )


async def test_job_without_a_time_has_waited_0_s(story: Story) -> None:
    await story.put("a", 0)
    await story.change("HDEL", "j:a", "time")
    await story.pop(1000)
    assert await story.day("wait") == {
        "total": "1",
        "mean": "0",
        "vk": "0",
        "s0": "1",
    }


# Retention


async def _work(story: Story, day: int, queue: str = "mail") -> None:
    """Run a job that waits and runs for a second on a day, and what is due then."""
    at = day * DAY
    await story.completed(f"{queue}-{day}", at, at + 1, at + 2, queue=queue)
    await story.store.agenda(now=at + 3)


async def _kept(story: Story) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """Return the days with statistics and those with histograms, by queue."""
    found = {
        tuple(key.split(":")[1:]): value
        for key, value in (await story.all_keys()).items()
        if key.startswith("s:")
    }
    histograms = {
        (queue, int(day) // DAY) for (_, day, queue), value in found.items() if "s1" in value
    }
    return {(queue, int(day) // DAY) for _, day, queue in found}, histograms


async def test_thirty_days_and_seven_histograms_are_kept_from_the_start_with_one_job_a_day(
    story: Story,
) -> None:
    for day in range(70):
        await _work(story, day)
        days, histograms = await _kept(story)
        assert days == {("mail", kept) for kept in range(max(0, day - 29), day + 1)}
        assert histograms == {("mail", kept) for kept in range(max(0, day - 6), day + 1)}


async def test_retry_and_failure_counts_are_pruned(story: Story) -> None:
    await story.failed("f")
    await _work(story, 29)
    assert await story.day() == {"failures": "1", "failed": "1"}
    await _work(story, 30)
    assert await story.day() == {}


async def test_pruned_histogram_leaves_the_totals_of_a_day(story: Story) -> None:
    await _work(story, 0)
    await _work(story, 7)
    assert await story.day("run") == {"total": "1", "mean": "1", "vk": "0"}


async def test_retention_of_statistics_is_configurable(story: Story) -> None:
    await story.configure(stats_history=3, histogram_history=1)
    for day in range(6):
        await _work(story, day)
    assert await _kept(story) == ({("mail", 3), ("mail", 4), ("mail", 5)}, {("mail", 5)})
    await story.configure(stats_history=0)
    await _work(story, 6)
    assert await _kept(story) == ({("mail", 6)}, {("mail", 6)})


async def test_unused_queue_leaves_no_statistics(story: Story) -> None:
    for number in range(40):
        await _work(story, number % 3, f"customer-{number}")
    await story.put("a", 0, queue="cancelled")
    await story.cancel("a")
    await story.put("b", 0, queue="waiting")
    await story.put("c", 0, queue="paused")
    await story.cancel("c")
    await story.store.pause(queues=["paused"])
    await story.recur("d", 0, queue="recurring", interval=1e9, offset=1e9)
    while (await story.reviewed("statistics") or math.inf) <= 40 * DAY:
        await story.store.agenda(now=40 * DAY)
    assert await _kept(story) == (set(), set())
    known = {"waiting", "paused", "recurring"}
    assert set(await story.scores("queues")) == known
    await _work(story, 40, "customer-1")
    assert set(await story.scores("queues")) == {*known, "customer-1"}


async def test_days_with_gaps_between_them_are_pruned(
    story: Story,
) -> None:
    await story.configure(stats_history=200)
    for day in (0, 20, 25, 100):
        await _work(story, day)
    for now, kept in (
        (199, {0, 20, 25, 100}),
        (200, {20, 25, 100}),
        (219, {20, 25, 100}),
        (220, {25, 100}),
        (299, {100}),
        (300, set()),
    ):
        await story.store.agenda(now=now * DAY)
        assert {day for _, day in (await _kept(story))[0]} == kept


async def test_statistics_of_other_clients_are_pruned_too(story: Story) -> None:
    for day in range(60):
        await story.change(
            "HSET", f"s:run:{day * DAY}:theirs", "total", 3, "mean", 1.5, "vk", 2, "s1", 3
        )
    await story.change("ZADD", "queues", 5, "theirs")
    await _work(story, 59)
    await _work(story, 60)
    days, histograms = await _kept(story)
    assert {day for queue, day in days if queue == "theirs"} == set(range(31, 60))
    assert {day for queue, day in histograms if queue == "theirs"} == set(range(54, 60))


async def test_resolving_check_prunes_statistics_of_unlisted_queues(
    story: Story,
) -> None:
    for day in (0, 10, 31, 59):
        for kind in ("wait", "run"):
            await story.change(
                "HSET", f"s:{kind}:{day * DAY}:a:queue", "total", 3, "mean", 1.5, "vk", 2, "s1", 3
            )
        await story.change("HSET", f"s:stats:{day * DAY}:a:queue", "failures", 1)
    before = await story.all_keys()
    assert await findings(story, at=60 * DAY) == [] and await story.all_keys() == before
    assert await findings(story, at=60 * DAY, resolve="resolve") == []
    days = {key for key in await story.all_keys() if key.startswith("s:")}
    assert days == {
        f"s:{kind}:{day * DAY}:a:queue" for kind in ("wait", "run", "stats") for day in (31, 59)
    }
    assert "s1" not in await story.day("run", day=31 * DAY, queue="a:queue")
    assert "s1" in await story.day("run", day=59 * DAY, queue="a:queue")
    assert await findings(story, at=100 * DAY, resolve="resolve") == []
    assert await story.all_keys() == {}


async def test_days_before_a_clock_was_set_back_are_pruned(story: Story) -> None:
    await _work(story, 60)
    await _work(story, 12)
    assert await story.day("run", day=12 * DAY) != {}
    await _work(story, 45)
    assert await story.day("run", day=12 * DAY) == {}


async def test_numbers_stay_finite(story: Story) -> None:
    await story.running("a", 1e11 - 1, 1e11)
    stats = await _stats(story, 1e11)
    assert math.isfinite(stats["wait"]["std"])
    assert stats["wait"]["count"] == 1


@pytest.mark.parametrize("time", ["nan", "-nan", "inf", "-inf", "1e400"])
async def test_job_with_an_invalid_time_has_waited_0_s(story: Story, time: str) -> None:
    await story.put("a", 1)
    await story.change("HSET", "j:a", "time", time)
    assert await story.pop(5) == ["a"]
    assert await story.day("wait") == {
        "total": "1",
        "mean": "0",
        "vk": "0",
        "s0": "1",
    }
