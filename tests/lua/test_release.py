"""release: the holder returns a running job without using a retry."""

from aioqless.errors import LockLost
from tests.lua.story import Story


async def test_release_stores_data_only_for_the_holder(story: Story) -> None:
    await story.running("a")
    async with story.refused(LockLost):
        await story.release("a", 2, worker="bob", data="[1]")
    await story.release("a", 3, data="[ 2]", delay=10)
    assert (await story.job("a"))["data"] == "[ 2]"
