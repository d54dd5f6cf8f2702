"""move: put a job that waits or is scheduled into another queue."""

import pytest

from aioqless.errors import QueueFull
from tests.lua.story import Story


async def move(story: Story, jid: str, now: float, queue: str = "post") -> int:
    return await story.store.move(queue=queue, jid=jid, now=now)


async def test_waiting_job_is_moved_with_its_data_and_options(story: Story) -> None:
    await story.put("a", 0, data="[1]", priority=-3, tags=["x"])
    assert await move(story, "a", 1) == 1
    job = await story.get("a")
    assert (job["queue"], job["state"], job["data"]) == ("post", "waiting", "[1]")
    assert (job["priority"], job["tags"]) == (-3, ["x"])


async def test_scheduled_job_stays_due_when_it_was(story: Story) -> None:
    await story.put("a", 0, delay=60)
    assert await move(story, "a", 10) == 1
    assert await story.pop(59, queue="post") == []
    assert await story.pop(61, queue="post") == ["a"]


async def test_moved_job_expires_when_it_would_have(story: Story) -> None:
    await story.put("a", 0, expires_in=60)
    assert await move(story, "a", 10) == 1
    assert (await story.job("a"))["x-expiry"] == "60"


async def test_job_that_a_limit_holds_back_waits_in_the_other_queue(story: Story) -> None:
    limits = '{"limits":[{"key":"k","limit":1}]}'
    await story.put("a", 0, constraints=limits)
    await story.put("b", 0.5, constraints=limits)
    assert await story.pop(1, count=2) == ["a"]
    assert await move(story, "b", 2) == 1
    assert await story.state("b") == "waiting"


async def test_other_jobs_are_left_alone(story: Story) -> None:
    await story.running("runs")
    await story.put("held", 2, depends=["runs"])
    await story.put("here", 2)
    async with story.unchanged():
        assert [await move(story, jid, 3) for jid in ("runs", "held", "gone")] == [0, 0, 0]
        assert await move(story, "here", 3, queue="mail") == 0


async def test_full_queue_refuses_it(story: Story) -> None:
    await story.configure(post_max_length=1)
    await story.put("there", 0, queue="post")
    await story.put("a", 0)
    with pytest.raises(QueueFull):
        await move(story, "a", 1)
