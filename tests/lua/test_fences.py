"""Fencing tokens: a number per run that distinguishes the lock's holder from former runs."""

from aioqless.errors import LockLost
from tests.lua.story import Story


async def test_counter_never_expires(story: Story) -> None:
    await story.running("a")
    assert await story.ask("TTL", story.key("x:fence")) == -1


async def test_run_started_by_another_client_has_no_fence(story: Story) -> None:
    await story.running("a")
    await story.change("HDEL", "j:a", "x-fence")
    assert (await story.get("a"))["fence"] == 0
    async with story.refused(LockLost, jid="a"):
        await story.heartbeat("a", 5, fence="1")
    assert await story.heartbeat("a", 5) == 65
