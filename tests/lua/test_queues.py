"""queues, length, jobs, pause, unpause and forget."""

from typing import Any

import pytest

from tests.lua.story import Story


@pytest.fixture
async def full(story: Story) -> Story:
    """Fill a queue with jobs in all states at the time 100.

    One running, two stalled, three scheduled, one with dependencies, two waiting, one due, one
    recurring.
    """
    for at, jid in ((1, "stalled1"), (2, "stalled2"), (50, "running1")):
        await story.running(jid, 0, at)
    for at, jid in enumerate(("scheduled1", "scheduled2", "scheduled3")):
        await story.put(jid, 3, delay=200 + at)
    await story.put("due", 4, delay=5)
    await story.put("waiting1", 5)
    await story.put("waiting2", 6)
    await story.put("held", 7, depends=["waiting1"])
    await story.recur("r", 8, offset=1000)
    return story


async def _jobs(story: Story, state: str, **more: Any) -> list[str]:
    jids: list[str] = await story.store.jobs(state=state, **{"now": 100, "queue": "mail", **more})
    return jids


# lag


async def test_lag_is_the_waiting_time_of_the_first_job(story: Story) -> None:
    async def lag(now: float) -> float:
        (seconds,) = await story.store.lag(queues=["mail"], now=now)
        return float(seconds)

    assert await lag(10) == 0
    await story.put("later", 10, delay=90)
    assert await lag(50) == 0
    await story.put("a", 20)
    await story.put("urgent", 25, priority=-3)
    assert await lag(30) == pytest.approx(5, abs=0.001)
    await story.pop(30)
    assert await lag(30) == pytest.approx(10, abs=0.001)
    await story.pop(30)
    assert await lag(103) == 3
    await story.timeout("a", at=104)
    assert await lag(105) == 75


async def test_lags_of_several_queues_are_in_their_order(story: Story) -> None:
    await story.put("a", 20)
    assert await story.store.lag(queues=["other", "mail"], now=21) == [
        0,
        pytest.approx(1, abs=0.001),
    ]


# queues


async def test_queue_is_counted_state_by_state(full: Story) -> None:
    assert await full.store.queues(now=100, queue="mail") == {
        "name": "mail", "waiting": 3, "running": 1, "stalled": 2, "scheduled": 3, "depends": 1,
        "recurring": 1, "paused": False,
    }  # fmt: skip


async def test_names_only_are_listed_in_pages(story: Story) -> None:
    for n, queue in enumerate(("zebra", "apple", "mango")):
        await story.put(f"j{n}", n, queue=queue)
    assert await story.store.queue_names() == ["zebra", "apple", "mango"]
    assert await story.store.queue_names(offset=1, count=1) == ["apple"]
    assert await story.store.queue_names(offset=3) == await story.store.queue_names(count=0) == []


async def test_queues_are_listed_in_order_of_creation(story: Story) -> None:
    for at, queue in enumerate(("zebra", "apple", "mango", "zebra")):
        await story.put(f"j{at}", at, queue=queue)
    counts = await story.store.queues(now=9)
    assert [(each["name"], each["waiting"]) for each in counts] == [
        ("zebra", 2),
        ("apple", 1),
        ("mango", 1),
    ]
    assert counts[1] == await story.store.queues(now=9, queue="apple")
    assert [each["name"] for each in await story.store.queues(now=9, offset=1, count=1)] == [
        "apple"
    ]
    assert await story.store.queues(now=9, offset=0, count=0) == []


# length


async def test_length_counts_waiting_running_and_scheduled_jobs(full: Story) -> None:
    assert await full.store.length(queue="mail") == 9
    assert await full.store.length(queue="unknown") == 0


# jobs


@pytest.mark.parametrize(
    ("state", "jids"),
    [
        ("running", ["running1"]),
        ("stalled", ["stalled1", "stalled2"]),
        ("scheduled", ["scheduled1", "scheduled2", "scheduled3"]),
        ("depends", ["held"]),
        ("waiting", ["waiting1", "waiting2", "due"]),
        ("recurring", ["r"]),
    ],
)
async def test_jobs_of_a_state_are_listed(full: Story, state: str, jids: list[str]) -> None:
    assert await _jobs(full, state) == jids
    for offset in range(len(jids) + 1):
        for count in range(len(jids) + 1):
            assert (
                await _jobs(full, state, offset=offset, count=count)
                == jids[offset : offset + count]
            )


async def test_complete_jobs_are_listed_newest_first_whatever_their_queue(story: Story) -> None:
    for at, (jid, queue) in enumerate((("a", "mail"), ("b", "post"), ("c", "mail"))):
        await story.completed(jid, at, at, at, queue=queue)
    assert await _jobs(story, "complete", queue=None) == ["c", "b", "a"]
    assert await _jobs(story, "complete", queue=None, offset=1, count=1) == ["b"]


async def test_listing_returns_25_jobs_by_default(story: Story) -> None:
    for n in range(30):
        await story.put(f"j{n:02}", n, delay=1000)
    assert await _jobs(story, "scheduled") == [f"j{n:02}" for n in range(25)]


# pause, unpause, forget


async def test_forgotten_queue_is_not_listed_and_keeps_its_jobs(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 0, queue="post")
    await story.store.forget(queues=["mail", "post"])
    assert await story.store.queues(now=1) == []
    assert await story.pop(2) == ["a"]
    await story.put("c", 3)
    assert await story.scores("queues") == {"mail": 3}
