"""Retention of completed and failed jobs."""

import pytest

from aioqless.errors import InvalidArgument
from tests.lua.check.all_states import note
from tests.lua.story import Story


async def test_completed_jobs_are_deleted_after_a_week(story: Story) -> None:
    """Without options, each fiftieth completion of a queue deletes what is too old."""
    await story.completed("a", tags=["x"])
    for number in range(49):
        await story.completed(f"before{number}", 3, 4, 604801.9)
    assert await story.state("a") == "complete"
    for number in range(50):
        await story.completed(f"after{number}", 3, 4, 604802)
    assert await story.get("a") is None
    assert len(await story.scores("completed")) == 99
    assert (
        await story.scores("t:x"),
        await story.scores("tags"),
        await story.exists("j:a-history"),
    ) == ({}, {}, False)


async def test_job_that_runs_again_is_not_pruned_although_still_listed(story: Story) -> None:
    await story.configure(jobs_history=10)
    await story.completed("a")
    await story.put("a", 3)
    await story.change("ZADD", "completed", 2, "a")
    await story.completed("b", 1000, 1001, 1002, queue="post")
    assert (await story.state("a"), await story.scores("completed")) == ("waiting", {"b": 1002})


# Rules of queues and klasses, and for failed jobs


async def rule(story: Story, option: str, value: float) -> None:
    await story.store.config_set(option=option, value=value)


async def test_queue_can_have_its_own_retention(story: Story) -> None:
    await rule(story, "mail-jobs-history", 10)
    await rule(story, "long-jobs-history", 1_000_000)
    await story.completed("short", 0, 1, 2)
    await story.completed("long", 0, 1, 2, queue="long")
    await story.completed("usual", 0, 1, 2, queue="post")
    await story.completed("later", 3, 4, 11.9, queue="post")
    assert await story.state("short") == "complete"
    await story.completed("latest", 3, 4, 12, queue="post")
    assert await story.get("short") is None and await story.state("usual") == "complete"
    await story.completed("week", 604_802, 604_802, 604_803, queue="post")
    assert await story.get("usual") is None and await story.state("long") == "complete"
    await story.completed("end", 1_000_002, 1_000_002, 1_000_002, queue="post")
    assert await story.get("long") is None


async def test_rule_of_a_klass_overrides_that_of_the_queue(story: Story) -> None:
    await rule(story, "mail-jobs-history", 10)
    await rule(story, "Greet-jobs-history", 100)
    await story.completed("a", 0, 1, 2)
    await story.completed("b", 0, 1, 50)
    assert await story.state("a") == "complete"
    await story.completed("c", 0, 1, 102)
    assert await story.get("a") is None


async def test_job_that_moves_on_deletes_no_completed_ones(story: Story) -> None:
    """It adds none, so its call need not look for old ones."""
    await story.configure(jobs_history=10)
    await story.completed("a", 0, 1, 2)
    await story.running("b", 20, 21)
    await story.complete("b", 22, next="post")
    assert await story.state("a") == "complete"


async def test_queue_that_keeps_nothing_deletes_at_once(story: Story) -> None:
    await rule(story, "mail-jobs-history", 0)
    await story.completed("a", 0, 1, 2)
    assert await story.get("a") is None and await story.scores("completed") == {}


async def test_unset_rule_is_forgotten(story: Story) -> None:
    await rule(story, "mail-jobs-history", 10)
    await story.store.config_unset(option="mail-jobs-history")
    await story.completed("a", 0, 1, 2)
    assert await story.scores("completed") == {"a": 2} and not await story.exists(
        "x:retention-rules"
    )


async def test_failed_jobs_are_kept_unless_a_rule_limits_them(
    story: Story,
) -> None:
    await story.failed("kept", 0, 1, 2)
    await rule(story, "failed-history", 100)
    await rule(story, "mail-failed-history", 10)
    await story.failed("a", 0, 1, 2, tags=["x"])
    await story.failed("b", 0, 1, 2, queue="post")
    await story.failed("c", 0, 1, 11, queue="post")
    assert await story.state("a") == "failed"
    await story.failed("d", 0, 1, 12, queue="post")
    assert await story.get("a") is None and await story.state("b") == "failed"
    assert await story.items("f:typo") == ["d", "c", "b", "kept"]
    await story.failed("e", 0, 1, 102, queue="post")
    assert await story.items("f:typo") == ["e", "d", "c", "kept"]


async def test_retried_job_is_not_pruned_for_its_former_failure(story: Story) -> None:
    await rule(story, "failed-history", 10)
    await story.failed("a", 0, 1, 2)
    await story.put("a", 3)
    await story.failed("b", 0, 1, 100, queue="post")
    assert await story.state("a") == "waiting"


@pytest.mark.parametrize("way", ["unfail", "revive", "put", "by a peer"])
async def test_job_that_fails_again_in_a_queue_without_a_rule_is_kept(
    story: Story, way: str
) -> None:
    await rule(story, "mail-failed-history", 10)
    await story.failed("a", 0, 1, 2)
    if way == "unfail":
        await story.store.unfail(queue="post", group="typo", now=3)
    elif way == "revive":
        await rule(story, "mail-failed-history", 1000)
        await story.store.revive_job(jid="a", now=3)
    elif way == "put":
        await story.put("a", 3, queue="post")
    else:
        await story.put("a", 3, queue="post")
        await story.change("ZADD", "x:agenda", 12, note("failed expired", "a"))
    queue = "mail" if way == "revive" else "post"
    assert await story.pop(4, queue=queue) == ["a"]
    await story.fail("a", 5)
    await story.failed("b", 90, 91, 100, queue="letters")
    assert await story.state("a") == "failed"


async def test_tick_deletes_failed_jobs_whose_retention_is_over(story: Story) -> None:
    await rule(story, "failed-history", 10)
    for number in range(3):
        await story.failed(f"j{number}", number, number, number + 2)
    async with story.unchanged():
        await story.tick(11)
    await story.tick(13)
    assert await story.items("f:typo") == ["j2"]
    await story.tick(14)
    assert not await story.exists("failures") and await story.noted() == []


async def test_failed_job_with_dependents_is_not_pruned(story: Story) -> None:
    await rule(story, "failed-history", 10)
    await story.running("a")
    await story.put("b", 1, depends=["a"])
    await story.fail("a", 2)
    await story.failed("c", 0, 1, 100, queue="post")
    assert await story.state("a") == "failed"
    await story.cancel("b")
    await story.failed("d", 0, 1, 3700, queue="post")
    assert await story.get("a") is None


async def test_invalid_rule_is_refused(story: Story) -> None:
    async with story.refused(InvalidArgument, argument="mail-jobs-history"), story.unchanged():
        await story.store.config_set(option="mail-jobs-history", value="long")
