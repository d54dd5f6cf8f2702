"""release: the holder returns a running job without using a retry."""

from aioqless.errors import LockLost
from tests.lua.story import Story, score


async def test_released_job_waits_at_its_former_place_with_all_retries(
    story: Story,
) -> None:
    await story.put("first", 3)
    await story.put("second", 4)
    await story.pop(5)
    assert await story.release("first", 9) == "waiting"
    assert await story.where("first") == {"work": score(0, 3)}
    assert (await story.get("first"))["remaining"] == 5
    assert await story.pop(10, count=2) == ["first", "second"]


async def test_release_is_an_event_of_the_history(story: Story) -> None:
    await story.running("a")
    await story.release("a", 2.9)
    assert (await story.items("j:a-history"))[2:] == ['[2,"released",{"worker":"ann"},0.900000]']


async def test_with_a_delay_a_released_job_is_scheduled_from_now(story: Story) -> None:
    await story.running("a", 3, 5)
    assert await story.release("a", 9.5, delay=30) == "scheduled"
    assert (await story.where("a"), await story.state("a")) == ({"scheduled": 39.5}, "scheduled")
    assert (await story.job("a"))["time"] == "9.500000"
    assert await story.pop(39.5, worker="bob") == ["a"]


async def test_job_popped_by_another_client_is_released_to_the_end_of_the_queue(
    story: Story,
) -> None:
    await story.running("a", 3, 5)
    await story.change("HDEL", "j:a", "x-put", "x-fence")
    await story.release("a", 9)
    assert (await story.where("a"), (await story.job("a"))["time"]) == (
        {"work": score(0, 9)},
        "9." + 6 * "0",
    )


async def test_release_stores_data_only_for_the_holder(story: Story) -> None:
    await story.running("a")
    async with story.refused(LockLost):
        await story.release("a", 2, worker="bob", data="[1]")
    await story.release("a", 3, data="[ 2]", delay=10)
    assert (await story.job("a"))["data"] == "[ 2]"
