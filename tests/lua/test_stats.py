"""stats: what a day was like in a queue."""

import math
import statistics
from typing import Any

import pytest

from .story import Story

DAY = 86400
COUNTERS = {"failures": 0, "retries": 0, "lost_locks": 0, "explicit_retries": 0}


async def _stats(story: Story, date: float = 0, queue: str = "mail") -> Any:
    return await story.scripts("stats", queue=queue, date=date)


async def test_a_day_without_jobs_is_all_zeros(story: Story) -> None:
    none = {"count": 0, "total": 0, "mean": 0, "std": 0, "variance": 0, "histogram": [0] * 148}
    assert await _stats(story) == {"failed": 0, **COUNTERS, "wait": none, "run": none}


async def test_waiting_is_from_put_to_pop_and_running_from_pop_to_completion(story: Story) -> None:
    await story.completed("a", 0, 3.5, 10)
    assert await story.day("wait") == {"total": "1", "mean": "3.5", "vk": "0", "s3": "1"}
    assert await story.day("run") == {"total": "1", "mean": "6.5", "vk": "0", "s6": "1"}
    stats = await _stats(story)
    assert (stats["wait"]["mean"], stats["run"]["mean"]) == (3.5, 6.5)


async def test_mean_deviation_and_variance_are_those_of_the_sample(story: Story) -> None:
    waits = [1, 2, 4, 8.5]
    for n, wait in enumerate(waits):
        await story.put(f"j{n}", 10 * n)
        await story.pop(10 * n + wait)
    wait = (await _stats(story))["wait"]
    assert (wait["count"], wait["total"]) == (4, 4)
    assert wait["mean"] == pytest.approx(statistics.mean(waits))
    assert wait["std"] == pytest.approx(statistics.stdev(waits))
    assert wait["variance"] == pytest.approx(statistics.variance(waits))


async def test_a_single_value_has_no_deviation(story: Story) -> None:
    await story.completed("a")
    run = (await _stats(story))["run"]
    assert (run["count"], run["std"], run["variance"]) == (1, 0, 0)


async def test_what_is_kept_is_the_mean_and_a_sum_of_squares_of_differences(story: Story) -> None:
    for n, wait in enumerate((1, 2, 4)):
        await story.put(f"j{n}", 10 * n)
        await story.pop(10 * n + wait)
    stored = await story.day("wait")
    assert stored["total"] == "3"
    assert float(stored["mean"]) == pytest.approx(7 / 3)
    assert float(stored["vk"]) == pytest.approx(2 * statistics.variance([1, 2, 4]))


async def test_jobs_of_one_pop_count_one_by_one(story: Story) -> None:
    for at in range(3):
        await story.put(f"j{at}", at)
    await story.pop(10, count=3)
    assert await story.day("wait") == {"total": "3", "mean": "9", "vk": "2", "s8": "1", "s9": "1", "s10": "1"}


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
async def test_a_histogram_has_seconds_then_minutes_then_hours_then_days(
    story: Story, seconds: float, bin_name: str, position: int | None
) -> None:
    await story.running("a", 10 * DAY - seconds, 10 * DAY)
    assert (await story.day("wait", day=10 * DAY))[bin_name] == "1"
    histogram = (await _stats(story, 10 * DAY))["wait"]["histogram"]
    assert len(histogram) == 148
    assert [place for place, count in enumerate(histogram) if count] == ([] if position is None else [position])


async def test_waits_belong_to_the_day_of_the_pop_and_runs_to_that_of_the_completion(story: Story) -> None:
    await story.completed("a", DAY - 10, DAY + 10, 2 * DAY + 5)
    assert await story.day("wait", day=DAY) == {"total": "1", "mean": "20", "vk": "0", "s20": "1"}
    assert await story.day("run", day=2 * DAY) == {"total": "1", "mean": "86395", "vk": "0", "h23": "1"}
    assert {key for key in await story.everything() if key.startswith("s:")} == {f"s:run:{2 * DAY}:mail", f"s:wait:{DAY}:mail"}


async def test_any_time_of_a_day_asks_for_that_day(story: Story) -> None:
    await story.completed("a", DAY, DAY + 1, DAY + 2)
    for date in (DAY, DAY + 0.5, 2 * DAY - 1):
        assert (await _stats(story, date))["run"]["count"] == 1
    for date in (DAY - 1, 2 * DAY):
        assert (await _stats(story, date))["run"]["count"] == 0


async def test_each_queue_has_its_own(story: Story) -> None:
    await story.completed("a", queue="post")
    assert ((await _stats(story))["run"]["count"], (await _stats(story, queue="post"))["run"]["count"]) == (0, 1)


async def test_a_job_that_goes_on_has_run_in_the_queue_it_leaves(story: Story) -> None:
    await story.running("a")
    await story.complete("a", 4, next="post")
    await story.pop(9, queue="post")
    assert (await story.day("run"), await story.day("run", queue="post")) == ({"total": "1", "mean": "3", "vk": "0", "s3": "1"}, {})
    assert await story.day("wait", queue="post") == {"total": "1", "mean": "5", "vk": "0", "s5": "1"}


async def test_a_job_without_a_time_has_waited_for_none(story: Story) -> None:
    await story.put("a", 0)
    await story.change("HDEL", "j:a", "time")
    await story.pop(1000)
    assert await story.day("wait") == {"total": "1", "mean": "0", "vk": "0", "s0": "1"}


async def test_failures_retries_and_what_is_still_failed_are_counted(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.failed("a")
    await story.failed("b")
    await story.put("b", 3)
    await story.pop(3)
    await story.pop(63)
    stats = await _stats(story)
    assert (stats["failures"], stats["failed"], stats["retries"]) == (2, 1, 1)


# What is kept for how long


async def _work(story: Story, day: int) -> None:
    """A job that waits and runs for a second on that day."""
    at = day * DAY
    await story.put(f"j{day}", at)
    await story.pop(at + 1)
    await story.complete(f"j{day}", at + 2)


async def test_histograms_are_kept_for_seven_days_and_summaries_for_thirty(story: Story) -> None:
    await story.failed("f")
    await _work(story, 0)
    await _work(story, 7)
    assert "s1" in await story.day("run")
    await _work(story, 8)
    for kind in ("wait", "run"):
        assert set(await story.day(kind)) == {"total", "mean", "vk"}
        assert "s1" in await story.day(kind, day=7 * DAY)
    await _work(story, 30)
    assert (await story.day("run"))["total"] == "1"
    await _work(story, 31)
    for kind in ("wait", "run", "stats"):
        assert await story.day(kind) == {}
    assert set(await story.day("run", day=7 * DAY)) == {"total", "mean", "vk"}


async def test_how_long_statistics_are_kept_is_an_option(story: Story) -> None:
    await story.configure(stats_history=3, histogram_history=1)
    await _work(story, 0)
    await _work(story, 2)
    assert set(await story.day("run")) == {"total", "mean", "vk"}
    await _work(story, 4)
    assert (await story.day("run"), "s1" in await story.day("run", day=4 * DAY)) == ({}, True)


async def test_long_unpruned_statistics_go_in_steps_of_thirty_days(story: Story) -> None:
    await _work(story, 0)
    await _work(story, 60)
    await story.put("a", 200 * DAY)
    await story.pop(200 * DAY)
    assert await story.day("run", day=60 * DAY) != {}
    await story.complete("a", 200 * DAY)
    assert await story.day("run", day=60 * DAY) == {}


async def test_days_that_a_clock_went_back_to_are_seen_to_as_well(story: Story) -> None:
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
async def test_a_job_whose_time_is_no_time_counts_as_one_that_waited_for_none(story: Story, time: str) -> None:
    await story.put("a", 1)
    await story.change("HSET", "j:a", "time", time)
    assert await story.pop(5) == ["a"]
    assert await story.day("wait") == {"total": "1", "mean": "0", "vk": "0", "s0": "1"}
