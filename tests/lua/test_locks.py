"""Expired locks: the holder's grace period, then another worker, then failure."""

from typing import Any

import pytest

from aioqless.errors import LockLost, WrongState
from tests.lua.story import Story, score


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


async def test_worker_may_pop_its_own_expired_job_again(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    assert await story.pop(61) == ["a"]
    assert await story.complete("a", 62) == "complete"


async def test_expired_locks_are_taken_over_in_order_of_expiry(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("z", 0, 1)
    await story.running("a", 0, 2)
    await story.running("m", 0, 3)
    assert await story.pop(100, worker="bob", count=2) == ["z", "a"]
    assert await story.pop(100, worker="bob", count=2) == ["m"]


async def test_every_expired_lock_counts_as_a_retry_of_the_day(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    await story.pop(61)
    await story.pop(121)
    assert await story.day() == {"retries": "2"}


async def test_former_grace_period_has_no_effect_once_it_is_configured_off(
    story: Story,
) -> None:
    await _expired(story)
    await story.configure(grace_period=0)
    assert await story.pop(71, worker="bob") == ["a"]
    assert await story.day() == {"retries": "2"}
    assert [what for _, what in await story.event_times("a")] == [
        "put",
        "popped",
        "timed-out",
        "timed-out",
        "popped",
    ]


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


async def test_grace_period_is_configurable(story: Story) -> None:
    await story.configure(grace_period=2.5)
    await _expired(story)
    assert await story.where("a") == {"locks": 63.5}


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


async def test_holder_may_fail_within_the_grace_period(story: Story) -> None:
    await _expired(story)
    assert await story.fail("a", 70) == "a"
    assert "grace" not in await story.job("a")


async def test_holder_may_retry_within_the_grace_period(story: Story) -> None:
    await _expired(story)
    assert await story.retry("a", 70) == 4
    assert "grace" not in await story.job("a")


async def test_holder_may_release_within_the_grace_period(story: Story) -> None:
    await _expired(story)
    assert await story.release("a", 70) == "waiting"
    assert "grace" not in await story.job("a")


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


@pytest.mark.parametrize("step", ["complete", "put", "timeout", "unfail"])
async def test_each_run_has_its_own_grace_period(story: Story, step: str) -> None:
    await _expired(story)
    if step == "complete":
        await story.complete("a", 62, next="mail")
    elif step == "put":
        await story.put("a", 62)
    elif step == "timeout":
        await story.timeout("a", at=62)
    else:
        await story.fail("a", 62)
        await story.store.unfail(queue="mail", group="typo", now=63)
    assert await story.pop(64, worker="bob") == ["a"]
    assert await story.pop(124) == [], "courtesy"
    assert await story.pop(134) == ["a"]


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


async def test_configured_number_of_retries_is_used(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a", retries=2)
    assert await story.pop(61, worker="bob") == ["a"]
    assert await story.pop(121) == ["a"]
    assert await story.pop(181, worker="bob") == []
    assert (
        await story.state("a"),
        (await story.get("a"))["remaining"],
        (await story.get("a"))["expires"],
    ) == ("failed", -1, 0)


async def test_exhausted_job_does_not_take_the_place_of_another(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a", retries=0)
    await story.put("b", 2)
    assert await story.pop(61, worker="bob") == ["b"]


async def test_holder_of_an_exhausted_job_is_refused(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a", retries=0)
    await story.pop(61, worker="bob")
    async with story.refused(WrongState, jid="a", state="failed"):
        await story.complete("a", 62)


async def test_unfailed_exhausted_job_has_all_retries_again(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a", retries=0)
    await story.pop(61, worker="bob")
    assert await story.store.unfail(queue="mail", group="failed-retries-mail", now=62) == 1
    assert ((await story.get("a"))["remaining"], await story.where("a")) == (
        0,
        {"work": score(0, 62)},
    )


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


async def test_errors_do_not_count_as_lost_locks(story: Story) -> None:
    await story.configure(grace_period=0, max_lost=1)
    await story.put("a", 0, retries=9)
    end = await _lost(story, "ann", "bob")
    for _ in range(3):  # this attempt of bob's ends with an error
        await story.retry("a", end - 1, worker="bob")
        assert await story.pop(end - 1, worker="bob") == ["a"]
    assert await story.pop(end + 60) == []
    assert (await story.get("a"))["failure"]["group"] == "mail-lost-locks"


@pytest.mark.parametrize("how", ["put", "unfail", "complete"])
async def test_lost_locks_are_counted_per_stage(story: Story, how: str) -> None:
    await story.configure(grace_period=0, max_lost=1)
    await story.put("a", 0, retries=9)
    end = await _lost(story, "ann", "bob")
    match how:
        case "put":
            await story.put("a", end)
        case "unfail":
            await story.fail("a", end, worker="bob")
            await story.store.unfail(queue="mail", group="typo", now=end)
        case _:
            await story.complete("a", end, worker="bob", next="mail")
    assert "x-lost" not in await story.job("a")
    end = await _lost(story, "ann", "bob", start=end)
    assert await story.state("a") == "running"
    assert await story.pop(end) == []
    assert (await story.get("a"))["failure"]["group"] == "mail-lost-locks"


async def test_grace_period_and_operator_timeout_do_not_count_as_lost_locks(
    story: Story,
) -> None:
    await _expired(story)
    await story.heartbeat("a", 62)
    await story.timeout("a", at=63)
    assert "x-lost" not in await story.job("a")


async def test_failure_names_former_workers_as_far_as_the_history_reaches(story: Story) -> None:
    await story.configure(grace_period=0, max_lost=1, max_job_history=1)
    await story.put("a", 0)
    end = await _lost(story, "ann", "bob")
    assert await story.pop(end) == []
    assert (await story.get("a"))["failure"][
        "message"
    ] == 'Lost its lock 2 times in queue "mail", lately by bob'
