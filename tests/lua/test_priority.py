"""priority: let a job run sooner or later than others."""

import math

from aioqless.errors import NoSuchJob
from tests.lua.story import Story, score


async def _prioritize(story: Story, jid: str, priority: float) -> float:
    answered: float = await story.store.priority(jid=jid, priority=priority)
    return answered


async def test_a_new_priority_is_answered_and_stored_with_its_sign_turned(story: Story) -> None:
    await story.put("a", 0)
    assert await _prioritize(story, "a", -2.5) == -2.5
    assert ((await story.job("a"))["priority"], (await story.get("a"))["priority"]) == ("2.5", -2.5)


async def test_zero_stays_zero(story: Story) -> None:
    await story.put("a", 0, priority=3)
    assert await _prioritize(story, "a", 0) == 0
    assert (await story.job("a"))["priority"] == "0"


async def test_a_waiting_job_changes_its_place_at_once(story: Story) -> None:
    await story.put("a", 1)
    await story.put("b", 2)
    await _prioritize(story, "b", -1)
    assert await story.where("b") == {"work": score(1, 2)}
    assert await story.pop(3, count=2) == ["b", "a"]


async def test_among_its_equals_a_job_keeps_the_place_of_its_time(story: Story) -> None:
    for at, jid in enumerate("abc"):
        await story.put(jid, at, priority=-1)
    await _prioritize(story, "b", 5)
    await _prioritize(story, "b", -1)
    assert await story.pop(9, count=3) == ["a", "b", "c"]


async def test_elsewhere_the_priority_counts_once_the_job_waits(story: Story) -> None:
    await story.put("a", 0, delay=10)
    await _prioritize(story, "a", -3)
    assert await story.where("a") == {"scheduled": 10}
    await story.peek(12)
    assert await story.where("a") == {"work": score(3, 12)}


async def test_a_running_job_has_its_new_priority_in_its_next_place(story: Story) -> None:
    await story.running("a")
    await _prioritize(story, "a", -3)
    assert await story.where("a") == {"locks": 61}
    await story.retry("a", 5)
    assert await story.where("a") == {"work": score(3, 5)}


async def test_a_completed_job_just_has_another_number(story: Story) -> None:
    await story.completed("a")
    await _prioritize(story, "a", -3)
    assert ((await story.job("a"))["priority"], await story.where("a")) == ("3", {})


async def test_a_stalled_job_stays_first_in_line(story: Story) -> None:
    await story.running("a")
    await story.timeout("a", at=2)
    await _prioritize(story, "a", 5)
    assert await story.where("a") == {"work": math.inf}


async def test_a_job_that_does_not_exist_is_refused(story: Story) -> None:
    async with story.refused(NoSuchJob, jid="a"):
        await _prioritize(story, "a", 1)
