"""priority: changes the priority of a job."""

import math

from aioqless.errors import NoSuchJob
from tests.lua.story import Story, score


async def _prioritize(story: Story, jid: str, priority: float) -> float:
    answered: float = await story.store.priority(jid=jid, priority=priority)
    return answered


async def test_priority_is_returned_and_stored_with_inverted_sign(story: Story) -> None:
    await story.put("a", 0)
    assert await _prioritize(story, "a", -2.5) == -2.5
    assert ((await story.job("a"))["priority"], (await story.get("a"))["priority"]) == ("2.5", -2.5)


async def test_zero_stays_zero(story: Story) -> None:
    await story.put("a", 0, priority=3)
    assert await _prioritize(story, "a", 0) == 0
    assert (await story.job("a"))["priority"] == "0"


async def test_waiting_job_changes_its_place_at_once(story: Story) -> None:
    await story.put("a", 1)
    await story.put("b", 2)
    await _prioritize(story, "b", -1)
    assert await story.where("b") == {"work": score(1, 2)}
    assert await story.pop(3, count=2) == ["b", "a"]


async def test_job_keeps_its_place_by_time_among_equal_priorities(story: Story) -> None:
    for at, jid in enumerate("abc"):
        await story.put(jid, at, priority=-1)
    await _prioritize(story, "b", 5)
    await _prioritize(story, "b", -1)
    assert await story.pop(9, count=3) == ["a", "b", "c"]


async def test_priority_applies_once_the_job_is_waiting(story: Story) -> None:
    await story.put("a", 0, delay=10)
    await _prioritize(story, "a", -3)
    assert await story.where("a") == {"scheduled": 10}
    await story.peek(12)
    assert await story.where("a") == {"work": score(3, 12)}


async def test_priority_of_a_running_job_applies_to_its_next_stage(story: Story) -> None:
    await story.running("a")
    await _prioritize(story, "a", -3)
    assert await story.where("a") == {"locks": 61}
    await story.retry("a", 5)
    assert await story.where("a") == {"work": score(3, 5)}


async def test_priority_of_a_completed_job_is_only_stored(story: Story) -> None:
    await story.completed("a")
    await _prioritize(story, "a", -3)
    assert ((await story.job("a"))["priority"], await story.where("a")) == ("3", {})


async def test_stalled_job_stays_first_in_line(story: Story) -> None:
    await story.running("a")
    await story.timeout("a", at=2)
    await _prioritize(story, "a", 5)
    assert await story.where("a") == {"work": math.inf}


async def test_job_that_does_not_exist_is_refused(story: Story) -> None:
    async with story.refused(NoSuchJob, jid="a"):
        await _prioritize(story, "a", 1)
