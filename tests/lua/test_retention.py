"""What is kept of completed jobs, for how long, and how many."""

from .story import Story


async def test_completed_jobs_are_deleted_after_a_week(story: Story) -> None:
    await story.completed("a", tags=["x"])
    await story.completed("b", 3, 4, 604801.9)
    assert await story.state("a") == "complete"
    await story.completed("c", 3, 4, 604802)
    assert await story.get("a") is None
    assert set(await story.scores("completed")) == {"b", "c"}
    assert (await story.scores("t:x"), await story.scores("tags"), await story.exists("j:a-history")) == ({}, {"x": 0}, False)


async def test_how_long_they_are_kept_is_an_option(story: Story) -> None:
    await story.configure(jobs_history=10)
    await story.completed("a", 0, 1, 2)
    await story.completed("b", 3, 4, 12)
    assert set(await story.scores("completed")) == {"b"}


async def test_only_so_many_are_kept_the_latest(story: Story) -> None:
    await story.configure(jobs_history_count=2)
    for at, jid in enumerate("cadb"):
        await story.completed(jid, at, at, at)
    assert await story.scores("completed") == {"d": 2, "b": 3}
    assert (await story.get("c"), await story.get("a")) == (None, None)


async def test_with_a_negative_time_nothing_is_kept_at_all(story: Story) -> None:
    await story.configure(jobs_history=-1)
    await story.running("a")
    await story.put("b", 2, depends=["a"])
    assert await story.complete("a", 3) == "complete"
    assert (await story.get("a"), await story.scores("completed")) == (None, {})
    assert await story.state("b") == "waiting", "who waited for it may run"


async def test_one_completion_deletes_no_more_than_its_share_and_the_next_ones_go_on(story: Story) -> None:
    for n in range(50):
        await story.completed(f"j{n}", n, n, n)
    await story.configure(jobs_history=10)
    await story.completed("a", 1000, 1001, 1002)
    assert len(await story.scores("completed")) == 51 - 22
    await story.completed("b", 1000, 1001, 1002)
    await story.completed("c", 1000, 1001, 1002)
    assert set(await story.scores("completed")) == {"a", "b", "c"}


async def test_a_job_that_is_at_work_again_is_not_deleted_though_still_listed(story: Story) -> None:
    await story.configure(jobs_history=10)
    await story.completed("a")
    await story.put("a", 3)
    await story.change("ZADD", "completed", 2, "a")
    await story.completed("b", 1000, 1001, 1002, queue="post")
    assert (await story.state("a"), await story.scores("completed")) == ("waiting", {"b": 1002})


async def test_what_is_tracked_is_remembered_by_its_jid(story: Story) -> None:
    await story.configure(jobs_history=-1)
    await story.running("a")
    await story.track("a", 2)
    await story.complete("a", 3)
    assert await story.scores("tracked") == {"a": 2}
