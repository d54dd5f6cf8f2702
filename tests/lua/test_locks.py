"""Expired locks: the holder's grace period, then another worker, then failure."""

from typing import Any

import pytest

from aioqless.errors import LockLost
from tests.lua.story import Story


async def _expired(story: Story, **more: Any) -> None:
    """Run a job as ann, and let a pop find that its lock has expired at 61."""
    await story.running("a", **more)
    assert await story.pop(61, worker="bob") == []


# Without a grace period, as specified


async def test_expired_lock_is_taken_over_at_once_without_a_grace_period(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    assert await story.pop(60.9, worker="bob") == []
    assert await story.pop(61, worker="bob") == ["a"]
    assert await story.where("a") == {"locks": 121}
    assert (await story.scores("w:ann:jobs"), await story.scores("w:bob:jobs")) == ({}, {"a": 121})
    assert await story.event_times("a") == [
        (0, "put"),
        (1, "popped"),
        (61, "timed-out"),
        (61, "popped"),
    ]
    stored = await story.job("a")
    assert (stored["worker"], stored["remaining"]) == ("bob", "4")
    assert "grace" not in stored


async def test_former_holder_of_a_taken_over_job_is_refused(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    await story.pop(61, worker="bob")
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.heartbeat("a", 62)
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.complete("a", 62)
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.fail("a", 62)
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.retry("a", 62)
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.release("a", 62)


# Grace periods


async def test_pop_that_finds_an_expired_lock_starts_a_grace_period_of_10_s(story: Story) -> None:
    await _expired(story)
    stored = await story.job("a")
    assert (
        stored["grace"],
        stored["state"],
        stored["worker"],
        stored["expires"],
        stored["remaining"],
    ) == (
        "1",
        "running",
        "ann",
        "61",
        "5",
    )
    assert await story.where("a") == {"locks": 71}
    assert await story.scores("w:ann:jobs") == {}
    assert (await story.items("j:a-history"))[2:] == ['[61,"timed-out"]']
    assert await story.day() == {"retries": "1"}


async def test_job_is_taken_over_after_the_grace_period_and_uses_a_retry(
    story: Story,
) -> None:
    await _expired(story)
    assert await story.pop(70.9, worker="bob") == []
    assert await story.pop(71, worker="bob") == ["a"]
    stored = await story.job("a")
    assert (stored["worker"], stored["remaining"]) == ("bob", "4")
    assert "grace" not in stored
    assert await story.event_times("a") == [
        (0, "put"),
        (1, "popped"),
        (61, "timed-out"),
        (71, "popped"),
    ]
    assert await story.day() == {"retries": "1"}, "a lapse counts once"


async def test_starting_a_grace_period_counts_towards_the_count_of_that_pop(
    story: Story,
) -> None:
    await story.running("a")
    await story.put("b", 2)
    assert await story.pop(61, worker="bob") == ["b"], (
        "the courtesy takes no place among those wanted"
    )


async def test_holder_may_complete_within_the_grace_period(story: Story) -> None:
    await _expired(story)
    assert await story.complete("a", 70) == "complete"


async def test_renewed_lock_gets_another_grace_period(story: Story) -> None:
    await _expired(story)
    assert await story.heartbeat("a", 62) == 122
    assert "grace" not in await story.job("a")
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == (
        {"locks": 122},
        {"a": 122},
    )
    assert await story.pop(122, worker="bob") == []
    assert await story.pop(132, worker="bob") == ["a"]


async def test_lock_of_a_missing_job_is_removed(story: Story) -> None:
    await story.change("ZADD", "q:mail-locks", 1, "ghost")
    await story.put("a", 0)
    assert await story.pop(2, count=2) == ["a"]
    assert await story.scores("q:mail-locks") == {"a": 62}


# Retries used up


async def test_job_with_exhausted_retries_fails_in_its_own_group(story: Story) -> None:
    await _expired(story, retries=0)
    assert await story.pop(71.9, worker="bob") == []
    stored = await story.job("a")
    assert (
        stored["state"],
        stored["worker"],
        stored["expires"],
        stored["remaining"],
        stored["queue"],
    ) == ("failed", "", "", "-1", "mail")
    assert "grace" not in stored
    assert await story.where("a") == {}
    assert (await story.members("failures"), await story.items("f:failed-retries-mail")) == (
        {"failed-retries-mail"},
        ["a"],
    )
    assert (await story.items("j:a-history"))[3:] == [
        '[71,"failed",{"group":"failed-retries-mail"},0.900000]'
    ]
    assert await story.day() == {"retries": "1", "failures": "1", "failed": "1"}


async def test_failure_of_an_exhausted_job_names_its_last_holder_and_a_whole_second(
    story: Story,
) -> None:
    await _expired(story, retries=0)
    await story.pop(71.9, worker="bob")
    text = (
        '{"group":"failed-retries-mail","message":"Job exhausted retries in queue '
        '\\"mail\\"","when":71,"worker":"ann"}'
    )
    assert (await story.job("a"))["failure"] == text


async def test_stale_grace_flag_of_another_client_skips_the_grace_period_without_losing_the_job(
    story: Story,
) -> None:
    await story.running("a")
    await story.change("HSET", "j:a", "grace", "1")
    assert await story.pop(61, worker="bob") == ["a"]
    assert (await story.get("a"))["remaining"] == 4


# Repeatedly lost locks


async def _lost(story: Story, *workers: str, start: float = 1) -> float:
    """Let each worker pop a job and lose its lock; returns when the last lock has expired."""
    for worker in workers:
        assert await story.pop(start, worker=worker) == ["a"]
        start += 60
    return start


async def test_job_that_lost_its_lock_too_often_fails_in_the_lost_locks_group_despite_retries(
    story: Story,
) -> None:
    await story.configure(grace_period=0, max_lost=2)
    await story.put("a", 0, retries=25)
    end = await _lost(story, "ann", "bob", "cid")
    async with story.published() as messages:
        assert await story.pop(end, worker="dan") == []
    message = 'Lost its lock 3 times in queue "mail", lately by cid, bob, ann'
    failure = {"group": "mail-lost-locks", "message": message, "when": end, "worker": "cid"}
    job = await story.get("a")
    assert (job["state"], job["remaining"], job["failure"]) == ("failed", 22, failure)
    assert (await story.members("failures"), await story.items("f:mail-lost-locks")) == (
        {"mail-lost-locks"},
        ["a"],
    )
    assert await story.where("a") == {} and await story.scores("w:cid:jobs") == {}
    told = {
        "event": "failed",
        "jid": "a",
        "worker": "cid",
        "group": "mail-lost-locks",
        "message": message,
    }
    assert ("log", told) in messages
    assert await story.day() == {"retries": "3", "failures": "1", "failed": "1"}


@pytest.mark.parametrize("option", [{}, {"max_lost": 0}], ids=["default", "zero"])
async def test_job_fails_only_when_its_retries_are_exhausted(
    story: Story, option: dict[str, int]
) -> None:
    await story.configure(grace_period=0, **option)
    await story.put("a", 0, retries=20)
    end = await _lost(story, *"abcdefghijklmnopqrstu")
    assert (await story.get("a"))["remaining"] == 0
    assert await story.pop(end) == []
    assert (await story.get("a"))["failure"]["group"] == "failed-retries-mail"


async def test_failure_names_former_workers_as_far_as_the_history_reaches(story: Story) -> None:
    await story.configure(grace_period=0, max_lost=1, max_job_history=1)
    await story.put("a", 0)
    end = await _lost(story, "ann", "bob")
    assert await story.pop(end) == []
    assert (await story.get("a"))["failure"][
        "message"
    ] == 'Lost its lock 2 times in queue "mail", lately by bob'
