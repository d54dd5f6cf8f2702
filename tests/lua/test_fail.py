"""fail: sets a job aside in a failure group."""

from aioqless.errors import InvalidArgument
from tests.lua.story import Story


async def test_message_may_be_empty_and_group_may_not(story: Story) -> None:
    await story.running("a")
    async with story.refused(InvalidArgument, argument="group"):
        await story.fail("a", 2, group="")
    await story.fail("a", 2, message="")
    assert (await story.get("a"))["failure"]["message"] == ""
