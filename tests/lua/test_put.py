"""put and requeue: creates a job, or moves an existing one."""

import pytest

from aioqless.errors import InvalidArgument
from tests.lua.story import Story


@pytest.mark.parametrize("queue", ['say "no"', "back\\slash", "grüße", "a]}b"])
async def test_put_of_an_odd_queue_keeps_its_name(story: Story, queue: str) -> None:
    await story.put("a", 1.5, queue=queue)
    assert await story.pop(3, queue=queue) == ["a"]
    put, _ = (await story.get("a"))["history"]
    assert (put["what"], put["q"], put["when"]) == ("put", queue, 1.5)


@pytest.mark.parametrize("number", ["0x10", " 16 ", "1.6e1", "16.0"])
async def test_numbers_are_parsed_leniently(story: Story, number: str) -> None:
    await story.by_hand(
        "put", ["mail"], "a", "Greet", "{}", number, number, "priority", number, "retries", number
    )
    stored = await story.job("a")
    assert (stored["time"], stored["priority"], stored["retries"]) == (
        "16." + 6 * "0",
        "-16",
        "16",
    )
    assert await story.where("a") == {"scheduled": 32}


async def test_data_that_clients_have_checked_is_stored_as_it_is(story: Story) -> None:
    unchecked = "x" * 70_000
    await story.put("a", 0, data=unchecked)
    assert (await story.job("a"))["data"] == unchecked


async def test_job_with_a_time_is_scheduled_for_it_whatever_its_delay(story: Story) -> None:
    await story.put("a", 10, delay=99, at=15)
    await story.put("b", 10, depends=["a"], at=20)
    assert await story.where("a") == {"scheduled": 15}
    assert (await story.job("b"))["scheduled"] == "20"


async def test_job_whose_time_has_passed_is_waiting(story: Story) -> None:
    await story.put("a", 10, at=9)
    assert await story.state("a") == "waiting"


async def test_job_with_an_invalid_jid_of_another_client_can_be_moved_by_requeue_only(
    story: Story,
) -> None:
    await story.put("a", 0)
    await story.change("RENAME", "j:a", story.key("j:a-history-history"))
    await story.change("HSET", "j:a-history-history", "jid", "a-history-history")
    async with story.refused(InvalidArgument, argument="jid"):
        await story.put("a-history-history", 1)
    requeued = await story.store.requeue(
        queue="post", jid="a-history-history", klass="Greet", data="{}", now=1, delay=0
    )
    assert requeued == "a-history-history"
