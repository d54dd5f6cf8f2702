"""heartbeat: renews the lock of a running job."""

import pytest

from aioqless.errors import InvalidArgument, LockLost, NoSuchJob, WrongState
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


async def test_heartbeat_updates_the_last_seen_time_of_the_worker(story: Story) -> None:
    await story.running("a")
    await story.heartbeat("a", 31)
    assert await story.scores("workers") == {"ann": 31}


async def test_heartbeat_duration_is_that_of_the_queue(story: Story) -> None:
    await story.configure(heartbeat=30, mail_heartbeat=7)
    await story.running("a")
    await story.running("b", queue="post")
    assert (await story.heartbeat("a", 10), await story.heartbeat("b", 10)) == (17, 40)


async def test_data_sent_with_a_heartbeat_is_kept_byte_for_byte(story: Story) -> None:
    await story.running("a", data="[]")
    await story.heartbeat("a", 2, data='{"done": [], "n": 12345678901234567}')
    assert (await story.job("a"))["data"] == '{"done": [], "n": 12345678901234567}'
    await story.heartbeat("a", 3)
    assert (await story.job("a"))["data"] == '{"done": [], "n": 12345678901234567}'


async def test_invalid_data_does_not_renew_the_lock(story: Story) -> None:
    await story.running("a")
    async with story.refused(InvalidArgument, argument="data"):
        await story.heartbeat("a", 2, data="{")


async def test_heartbeat_adds_no_event_to_the_history(story: Story) -> None:
    await story.running("a")
    await story.heartbeat("a", 2)
    assert (await story.event_times("a"), (await story.job("a"))["time"]) == (
        [(0, "put"), (1, "popped")],
        "1." + 20 * "0",
    )


async def test_expired_lock_can_be_renewed_unless_it_was_taken_over(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 1000) == 1060


async def test_worker_whose_lock_was_taken_over_cannot_renew(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    await story.pop(61, worker="bob")
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.heartbeat("a", 62)


@pytest.mark.parametrize("state", ["waiting", "scheduled", "complete", "failed", "stalled"])
async def test_only_a_running_job_has_a_lock_to_renew(story: Story, state: str) -> None:
    if state in ("waiting", "scheduled"):
        await story.put("a", 0, delay=0 if state == "waiting" else 10)
    elif state == "stalled":
        await story.running("a")
        await story.timeout("a", at=2)
    else:
        await (story.completed("a") if state == "complete" else story.failed("a"))
    async with story.refused(WrongState, jid="a", state=state):
        await story.heartbeat("a", 3)


async def test_canceled_job_has_no_lock_to_renew(story: Story) -> None:
    await story.running("a")
    await story.cancel("a")
    async with story.refused(NoSuchJob, jid="a"):
        await story.heartbeat("a", 3)
