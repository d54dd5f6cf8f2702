"""heartbeat: renews the lock of a running job."""

from aioqless.errors import LockLost
from tests.lua.story import Story


async def test_heartbeat_extends_the_lock_and_returns_its_expiry(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 31.5) == 91.5
    assert (await story.job("a"))["expires"] == "91.5"
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == (
        {"locks": 91.5},
        {"a": 91.5},
    )
    assert await story.pop(91, worker="bob") == []
    assert (await story.job("a")).get("grace") is None


async def test_exact_expiry_is_stored(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 1353000060.123456) == 1353000120.123456
    assert (await story.job("a"))["expires"] == "1353000120.123456"


async def test_worker_whose_lock_was_taken_over_cannot_renew(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    await story.pop(61, worker="bob")
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.heartbeat("a", 62)
