"""wait, signal, release of a run that waits: what wakes a parked job, and when."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless.errors import AlreadySignaled, InvalidArgument, LockLost
from tests.lua.story import Story
from tests.lua.test_steps import read

WAIT = "wait:approval"


async def wait(story: Story, at: float, name: str = "approval", **more: Any) -> list[str]:
    given = {"jid": "a", "worker": "ann", "wait_kind": "wait", **more}
    found: list[str] = await story.call("wait", now=at, name=name, **given)
    return found


async def signal(story: Story, at: float, value: str = "true", **more: Any) -> None:
    await story.call(
        "signal", **{"jid": "a", "now": at, "name": "approval", "result": value} | more
    )


async def parked(story: Story, until: float = 100, **more: Any) -> None:
    """Put a job that runs at 1, waits from 2 on, and is parked at 3."""
    await story.running("a", **more)
    await wait(story, 2, timeout=until - 2)
    assert await story.release("a", 3, waiting=[WAIT]) == "scheduled"


async def test_signal_that_was_replaced_meanwhile_is_not_received(story: Story) -> None:
    await story.running("a")
    await signal(story, 2, "1")
    await signal(story, 3, "2", replace="yes")
    assert (await wait(story, 4, accept=1)) == ["signal", "2 3.000 1 2"]
    assert (await wait(story, 5, accept=2)) == ["received", "3 5.000 1 2"]
    async with story.refused(AlreadySignaled, jid="a"):
        await signal(story, 6, "3", replace="yes")


async def test_run_that_lost_its_lock_stores_no_wait(story: Story) -> None:
    await story.running("a")
    for holder in ({"worker": "bob"}, {"fence": 99}):
        async with story.refused(LockLost, jid="a"):
            await wait(story, 2, **holder)
        async with story.refused(LockLost, jid="a"):
            await story.release("a", 2, waiting=[WAIT], **holder)
    assert await read(story) == {}


async def test_deadline_stays_when_a_parked_job_is_moved(story: Story) -> None:
    await parked(story, until=100)
    await story.call("requeue", queue="mail", jid="a", klass="Greet", data="{}", now=5)
    assert await story.pop(6) == ["a"]
    assert await wait(story, 6, timeout=98) == ["wait", "94"]


async def test_waiting_time_counts_from_the_wake(story: Story) -> None:
    await parked(story)
    await signal(story, 10)
    await story.pop(11)
    stats = await story.store.stats(queue="mail", date=0)
    assert stats["wait"]["count"] == 2
    assert stats["wait"]["mean"] == pytest.approx(1)  # from 0 to 1, and from 10 to 11


async def test_parked_job_no_longer_expires(story: Story) -> None:
    await parked(story, expires_in=5)
    assert "expiry" not in await story.get("a")


@pytest.mark.parametrize("until", ["started", "done"])
async def test_parked_job_keeps_its_unique_key(story: Story, until: str) -> None:
    key = f'{{"unique":"k","until":"{until}"}}'
    await parked(story, constraints=key)
    assert await story.put("b", 4, constraints=key) == "a"


async def test_parked_job_frees_its_limit_and_waits_for_it_again(story: Story) -> None:
    limit = '{"limits":[{"key":"k","limit":1}]}'
    await parked(story, constraints=limit)
    await story.put("b", 4, constraints=limit)
    assert await story.pop(5, worker="bob") == ["b"]
    await signal(story, 6)
    assert await story.pop(7) == []
    assert (await story.get("a"))["held_back"]["key"] == "k"
    await signal(story, 8, name="other")
    await story.complete("b", 9, worker="bob")
    assert await story.pop(10) == ["a"]


async def test_canceled_job_leaves_nothing(story: Story) -> None:
    await parked(story)
    await story.cancel("a")
    assert not await story.items("x:steps:a") and await story.noted() == []


async def test_notified_worker_is_told_the_name(story: Story) -> None:
    await story.running("a")
    await wait(story, 2)
    async with story.published() as messages:
        await signal(story, 3)
    assert messages == [("w:ann", {"event": "signaled", "jid": "a", "name": "approval"})]


async def test_unknown_kind_is_refused(story: Story) -> None:
    await story.running("a")
    async with story.refused(InvalidArgument, argument="wait_kind"):
        await wait(story, 2, wait_kind="call")


async def test_retry_from_a_wait_asks_anew(story: Story) -> None:
    await story.running("a")
    await signal(story, 2)
    await wait(story, 3, accept=1)
    await story.fail("a", 4)
    await story.call("revive", "job", jid="a", now=5, from_step="approval")
    assert await read(story) == {}


async def test_signal_that_is_sent_again_gets_the_first_answer(story: Story) -> None:
    await story.put("a", 1)
    for _ in range(2):
        await signal(story, 2, request="line:1")
    async with story.refused(AlreadySignaled, jid="a"):
        await signal(story, 3, request="line:2")
