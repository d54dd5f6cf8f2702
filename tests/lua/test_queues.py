"""The lag of queues, and their names."""

import pytest

from tests.lua.story import Story


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


async def test_names_only_are_listed_in_pages(story: Story) -> None:
    for n, queue in enumerate(("zebra", "apple", "mango")):
        await story.put(f"j{n}", n, queue=queue)
    assert await story.store.queue_names() == ["zebra", "apple", "mango"]
    assert await story.store.queue_names(offset=1, count=1) == ["apple"]
    assert await story.store.queue_names(offset=3) == await story.store.queue_names(count=0) == []
