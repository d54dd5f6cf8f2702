"""heartbeat: keep a running job's lock alive."""

import pytest

from aioqless.errors import InvalidArgument, LockLost, NoSuchJob, WrongState
from tests.lua.story import Story


async def test_a_heartbeat_pushes_the_expiry_back_and_answers_it(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 31.5) == 91.5
    assert (await story.job("a"))["expires"] == "91.5"
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == (
        {"locks": 91.5},
        {"a": 91.5},
    )
    assert await story.pop(91, worker="bob") == []
    assert (await story.job("a")).get("grace") is None


async def test_the_exact_expiry_is_stored(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 1353000060.123456) == 1353000120.123456
    assert (await story.job("a"))["expires"] == "1353000120.123456"


async def test_a_heartbeat_is_a_sign_of_life_of_its_worker(story: Story) -> None:
    await story.running("a")
    await story.heartbeat("a", 31)
    assert await story.scores("workers") == {"ann": 31}


async def test_a_heartbeat_lasts_as_long_as_the_jobs_queue_says(story: Story) -> None:
    await story.configure(heartbeat=30, mail_heartbeat=7)
    await story.running("a")
    await story.running("b", queue="post")
    assert (await story.heartbeat("a", 10), await story.heartbeat("b", 10)) == (17, 40)


async def test_data_sent_with_a_heartbeat_are_kept_byte_for_byte(story: Story) -> None:
    await story.running("a", data="[]")
    await story.heartbeat("a", 2, data='{"done": [], "n": 12345678901234567}')
    assert (await story.job("a"))["data"] == '{"done": [], "n": 12345678901234567}'
    await story.heartbeat("a", 3)
    assert (await story.job("a"))["data"] == '{"done": [], "n": 12345678901234567}'


async def test_bad_data_do_not_renew_the_lock(story: Story) -> None:
    await story.running("a")
    async with story.refused(InvalidArgument, argument="data"):
        await story.heartbeat("a", 2, data="{")


async def test_a_heartbeat_is_no_event_of_the_history_and_leaves_the_time(story: Story) -> None:
    await story.running("a")
    await story.heartbeat("a", 2)
    assert (await story.happened("a"), (await story.job("a"))["time"]) == (
        [(0, "put"), (1, "popped")],
        "1." + 20 * "0",
    )


async def test_a_lapsed_lock_can_be_renewed_as_long_as_nobody_took_it(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 1000) == 1060


async def test_a_worker_that_lost_its_lock_to_another_must_yield(story: Story) -> None:
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


async def test_a_cancelled_job_has_no_lock_to_renew(story: Story) -> None:
    await story.running("a")
    await story.cancel("a")
    async with story.refused(NoSuchJob, jid="a"):
        await story.heartbeat("a", 3)
