"""priority: changes the priority of a job."""

from tests.lua.story import Story, score


async def _prioritize(story: Story, jid: str, priority: float) -> float:
    answered: float = await story.store.priority(jid=jid, priority=priority)
    return answered


async def test_priority_is_returned_and_stored_with_inverted_sign(story: Story) -> None:
    await story.put("a", 0)
    assert await _prioritize(story, "a", -2.5) == -2.5
    assert ((await story.job("a"))["priority"], (await story.get("a"))["priority"]) == ("2.5", -2.5)


async def test_waiting_job_changes_its_place_at_once(story: Story) -> None:
    await story.put("a", 1)
    await story.put("b", 2)
    await _prioritize(story, "b", -1)
    assert await story.where("b") == {"work": score(1, 2)}
    assert await story.pop(3, count=2) == ["b", "a"]


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
