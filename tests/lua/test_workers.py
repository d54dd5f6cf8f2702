"""workers and deregister."""

from tests.lua.story import Story


async def test_workers_are_listed_by_last_activity(story: Story) -> None:
    await story.running("a", 0, 1, worker="ann")
    await story.running("b", 0, 2, worker="bob")
    await story.heartbeat("a", 3)
    assert await story.store.workers(now=4) == [
        {"name": "ann", "jobs": 1, "stalled": 0, "seen": 3, "queues": None},
        {"name": "bob", "jobs": 1, "stalled": 0, "seen": 2, "queues": None},
    ]


async def test_jobs_of_expired_locks_are_counted_as_stalled(story: Story) -> None:
    await story.running("a", 0, 1)
    await story.running("b", 0, 11)
    (worker,) = await story.store.workers(now=62)
    assert (worker["jobs"], worker["stalled"]) == (1, 1)


async def test_lock_that_expires_now_counts_as_running_and_stalled(story: Story) -> None:
    await story.running("a", 0, 1)
    (worker,) = await story.store.workers(now=61)
    assert (worker["jobs"], worker["stalled"]) == (1, 1)


async def test_jobs_of_a_worker_are_listed_latest_expiry_first(story: Story) -> None:
    for at, jid in enumerate(("old", "older", "a", "b"), 1):
        await story.running(jid, 0, at if at < 3 else at + 50)
    assert await story.store.workers(now=70, worker="ann") == {
        "jobs": ["b", "a"],
        "stalled": ["older", "old"],
    }


async def test_unknown_worker_has_no_jobs(story: Story) -> None:
    assert await story.store.workers(now=0, worker="ann") == {"jobs": [], "stalled": []}


async def test_workers_that_were_silent_for_a_day_are_omitted(story: Story) -> None:
    await story.pop(0, worker="ann")
    await story.pop(1, worker="bob")
    assert [each["name"] for each in await story.store.workers(now=86400)] == ["bob"]
    assert await story.store.workers(now=86401) == []


async def test_max_worker_age_is_configurable(story: Story) -> None:
    await story.configure(max_worker_age=10)
    await story.pop(0)
    assert len(await story.store.workers(now=9)) == 1
    assert await story.store.workers(now=10) == []


async def test_held_jobs_of_a_worker_are_stored_by_lock_expiry(story: Story) -> None:
    await story.running("a", 0, 1)
    await story.running("b", 0, 2, queue="post")
    await story.heartbeat("a", 10)
    assert await story.scores("w:ann:jobs") == {"a": 70, "b": 62}


async def test_deregistered_worker_is_not_listed_until_its_next_pop(story: Story) -> None:
    await story.running("a", worker="ann")
    await story.pop(2, worker="bob")
    await story.store.deregister(workers=["ann", "bob", "unknown"])
    assert await story.store.workers(now=3) == []
    assert await story.store.workers(now=3, worker="ann") == {"jobs": ["a"], "stalled": []}
    await story.pop(4, worker="ann")
    (worker,) = await story.store.workers(now=5)
    assert (worker["name"], worker["jobs"], worker["stalled"]) == ("ann", 1, 0)


async def test_worker_is_registered_with_its_queues_until_it_is_deregistered(story: Story) -> None:
    await story.store.register(worker="ann", queues=["mail", "post-*"], now=5)
    assert await story.store.workers(now=6) == [
        {"name": "ann", "jobs": 0, "stalled": 0, "seen": 5, "queues": ["mail", "post-*"]}
    ]
    await story.store.register(worker="ann", queues=[], now=7)
    assert (await story.store.workers(now=8))[0]["queues"] == []
    await story.store.deregister(workers=["ann"])
    assert not await story.exists("x:subscriptions")
