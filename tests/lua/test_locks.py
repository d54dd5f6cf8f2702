"""Expired locks: entries that other clients leave, and the failure of a job that lost many."""

from tests.lua.story import Story


async def test_lock_of_a_missing_job_is_removed(story: Story) -> None:
    await story.change("ZADD", "q:mail-locks", 1, "ghost")
    await story.put("a", 0)
    assert await story.pop(2, count=2) == ["a"]
    assert await story.scores("q:mail-locks") == {"a": 62}


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
