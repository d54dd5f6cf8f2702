"""timeout: an operator takes running jobs from their workers."""

import math

import pytest

from aioqless.errors import WrongState
from tests.lua.story import Story


async def test_timed_out_job_is_stalled_and_popped_first(story: Story) -> None:
    await story.running("a", priority=9)
    await story.put("urgent", 2, priority=-100)
    await story.timeout("a", at=3)
    assert (await story.where("a"), await story.state("a")) == ({"work": math.inf}, "stalled")
    assert await story.pop(4, worker="bob", count=2) == ["a", "urgent"]


async def test_timeout_is_an_event_and_uses_no_retry(story: Story) -> None:
    await story.running("a")
    await story.timeout("a", at=3.9)
    assert (await story.items("j:a-history"))[2:] == ['[3,"timed-out",{},0.900000]']
    assert (await story.get("a"))["remaining"] == 5
    assert await story.day() == {}


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_job_that_does_not_run_prevents_all_timeouts_of_the_call(
    story: Story, order: tuple[str, ...]
) -> None:
    await story.running("a")
    await story.put("b", 2)
    async with story.refused(WrongState, jid="b", state="waiting"):
        await story.timeout(*order, at=3)
