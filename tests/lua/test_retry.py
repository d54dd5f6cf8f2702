"""retry: repeats a run and uses one of the job's retries."""

import pytest

from tests.lua.story import Story


async def test_retry_is_an_event_with_the_last_line_of_its_error(story: Story) -> None:
    await story.running("a")
    await story.retry("a", 5, group="net", message="Traceback:\n  File\nOSError: down\n")
    assert await story.event_times("a") == [(0, "put"), (1, "popped"), (5, "retried")]
    (record,) = await story.store.multiget(jids=["a"])
    assert record["history"][-1]["error"] == "OSError: down"


async def test_explicit_retry_is_counted_in_a_field_of_ours_beside_lost_locks(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    assert await story.pop(61) == ["a"]
    for at in (62, 63):
        await story.retry("a", at)
        assert await story.pop(at) == ["a"]
    assert await story.day() == {"retries": "1", "x-retries": "2"}
    parts = {"retries": 3, "lost_locks": 1, "explicit_retries": 2}
    today = await story.store.queues(now=70, queue="mail", totals="today")
    (day,) = await story.store.days(queue="mail", date=70, count=1)
    for counted in (await story.store.stats(queue="mail", date=70), today, day):
        assert {name: counted[name] for name in parts} == parts


@pytest.mark.parametrize("retries", [0, 1])
async def test_retry_stores_data_also_when_none_is_left(story: Story, retries: int) -> None:
    await story.running("a", retries=retries)
    await story.retry("a", 3, data="[ 2]")
    stored = await story.job("a")
    assert (stored["data"], stored["state"]) == ("[ 2]", "waiting" if retries else "failed")
