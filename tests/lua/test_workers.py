"""workers and deregister: who works, and on what."""

from tests.lua.story import Story


async def test_workers_are_listed_by_who_was_active_last(story: Story) -> None:
    await story.running("a", 0, 1, worker="ann")
    await story.running("b", 0, 2, worker="bob")
    await story.heartbeat("a", 3)
    assert await story.store.workers(now=4) == [
        {"name": "ann", "jobs": 1, "stalled": 0},
        {"name": "bob", "jobs": 1, "stalled": 0},
    ]


async def test_jobs_of_expired_locks_are_counted_as_stalled(story: Story) -> None:
    await story.running("a", 0, 1)
    await story.running("b", 0, 11)
    assert await story.store.workers(now=62) == [{"name": "ann", "jobs": 1, "stalled": 1}]


async def test_a_lock_that_expires_this_moment_counts_as_both(story: Story) -> None:
    await story.running("a", 0, 1)
    assert await story.store.workers(now=61) == [{"name": "ann", "jobs": 1, "stalled": 1}]


async def test_one_workers_jobs_are_listed_latest_expiry_first(story: Story) -> None:
    for at, jid in enumerate(("old", "older", "a", "b"), 1):
        await story.running(jid, 0, at if at < 3 else at + 50)
    assert await story.store.workers(now=70, worker="ann") == {
        "jobs": ["b", "a"],
        "stalled": ["older", "old"],
    }


async def test_an_unknown_worker_has_no_jobs(story: Story) -> None:
    assert await story.store.workers(now=0, worker="ann") == {"jobs": [], "stalled": []}


async def test_workers_that_were_silent_for_a_day_are_left_out(story: Story) -> None:
    await story.pop(0, worker="ann")
    await story.pop(1, worker="bob")
    assert [each["name"] for each in await story.store.workers(now=86400)] == ["bob"]
    assert await story.store.workers(now=86401) == []


async def test_how_long_a_worker_may_be_silent_is_an_option(story: Story) -> None:
    await story.configure(max_worker_age=10)
    await story.pop(0)
    assert len(await story.store.workers(now=9)) == 1
    assert await story.store.workers(now=10) == []


async def test_a_workers_held_jobs_are_kept_by_when_their_locks_expire(story: Story) -> None:
    await story.running("a", 0, 1)
    await story.running("b", 0, 2, queue="post")
    await story.heartbeat("a", 10)
    assert await story.scores("w:ann:jobs") == {"a": 70, "b": 62}


async def test_a_deregistered_worker_is_off_the_list_until_it_asks_again(story: Story) -> None:
    await story.running("a", worker="ann")
    await story.pop(2, worker="bob")
    await story.store.deregister(workers=["ann", "bob", "unknown"])
    assert await story.store.workers(now=3) == []
    assert await story.store.workers(now=3, worker="ann") == {"jobs": ["a"], "stalled": []}
    await story.pop(4, worker="ann")
    assert await story.store.workers(now=5) == [{"name": "ann", "jobs": 1, "stalled": 0}]
