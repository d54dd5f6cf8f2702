"""workers and deregister."""

from tests.lua.story import Story


async def test_workers_are_listed_by_last_activity(story: Story) -> None:
    await story.running("a", 0, 1, worker="ann")
    await story.running("b", 0, 2, worker="bob")
    await story.heartbeat("a", 3)
    assert await story.store.workers(now=4) == [
        {"name": "ann", "jobs": 1, "stalled": 0, "seen": 3, "alive": None, "queues": None},
        {"name": "bob", "jobs": 1, "stalled": 0, "seen": 2, "alive": None, "queues": None},
    ]


async def test_jobs_of_a_worker_are_listed_latest_expiry_first(story: Story) -> None:
    for at, jid in enumerate(("old", "older", "a", "b"), 1):
        await story.running(jid, 0, at if at < 3 else at + 50)
    assert await story.store.workers(now=70, worker="ann") == {
        "jobs": ["b", "a"],
        "stalled": ["older", "old"],
    }


async def test_workers_that_were_silent_for_a_day_are_omitted(story: Story) -> None:
    await story.pop(0, worker="ann")
    await story.pop(1, worker="bob")
    assert [each["name"] for each in await story.store.workers(now=86400)] == ["bob"]
    assert await story.store.workers(now=86401) == []
