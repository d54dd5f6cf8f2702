"""Fencing tokens: a number per run that distinguishes the lock's holder from former runs."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioqless.errors import LockLost
from tests.lua.story import Story

Act = Callable[[Story, str], Awaitable[Any]]

_ACTS: dict[str, Act] = {
    "heartbeat": lambda story, fence: story.heartbeat("a", 5, fence=fence),
    "complete": lambda story, fence: story.complete("a", 5, fence=fence),
    "fail": lambda story, fence: story.fail("a", 5, fence=fence),
    "retry": lambda story, fence: story.retry("a", 5, fence=fence),
    "release": lambda story, fence: story.release("a", 5, fence=fence),
}


async def test_every_pop_has_a_higher_number_whatever_the_queue(story: Story) -> None:
    for n, queue in enumerate(("mail", "post", "mail"), 1):
        await story.running(f"j{n}", queue=queue)
        assert ((await story.job(f"j{n}"))["x-fence"], (await story.get(f"j{n}"))["fence"]) == (
            str(n),
            n,
        )


async def test_counter_never_expires(story: Story) -> None:
    await story.running("a")
    assert await story.ask("TTL", story.key("x:fence")) == -1


@pytest.mark.parametrize("act", _ACTS.values(), ids=_ACTS)
async def test_earlier_run_of_the_same_worker_has_lost_its_lock(story: Story, act: Act) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    assert await story.pop(61) == ["a"]
    async with story.refused(LockLost, jid="a", holder="ann", fence="2"):
        await act(story, "1")
    await act(story, "2")


async def test_run_started_by_another_client_has_no_fence(story: Story) -> None:
    await story.running("a")
    await story.change("HDEL", "j:a", "x-fence")
    assert (await story.get("a"))["fence"] == 0
    async with story.refused(LockLost, jid="a"):
        await story.heartbeat("a", 5, fence="1")
    assert await story.heartbeat("a", 5) == 65
