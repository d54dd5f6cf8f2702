"""decline: a worker without a handler gives a job back, as if it had not been popped."""

from __future__ import annotations

import json
from typing import Any

from aioqless.errors import LockLost, WrongState
from tests.lua.story import Story


async def decline(story: Story, jid: str, at: float, **more: Any) -> Any:
    arguments = {"worker": "ann", "delay": 5, "timeout": 600, **more}
    return await story.store.decline(
        jid=jid, now=at, group="mail-UnknownKlass", message="no handler", **arguments
    )


async def test_declined_job_is_scheduled_and_uses_no_retry(story: Story) -> None:
    await story.running("a", 3, 5)
    assert await decline(story, "a", 5.5) == "scheduled"
    stored = await story.job("a")
    assert (stored["state"], stored["worker"], stored["remaining"]) == ("scheduled", "", "5")
    assert "x-lost" not in stored and await story.scores("w:ann:jobs") == {}
    assert await story.where("a") == {"scheduled": 10.5}
    assert await story.pop(10.4) == [] and await story.pop(10.5) == ["a"]


async def test_history_has_one_event_however_often_a_job_is_declined(story: Story) -> None:
    await story.put("a", 3)
    for at in range(5, 605, 5):
        assert await story.pop(at) == ["a"]
        assert await decline(story, "a", at) == "scheduled"
    assert await story.event_times("a") == [(3, "put"), (5, "declined")]


async def test_declined_pops_leave_the_statistics_and_its_wait_goes_on(story: Story) -> None:
    await story.put("b", 1)
    assert await story.pop(2) == ["b"]
    before = await story.day("wait")
    await story.put("a", 3)
    for at in (5, 10):
        assert await story.pop(at) == ["a"]
        await decline(story, "a", at)
    after = {name: value for name, value in (await story.day("wait")).items() if value != "0"}
    assert after == {name: value for name, value in before.items() if value != "0"}
    await story.pop(15)
    assert (await story.day("wait"))["s12"] == "1"


async def test_statistics_are_empty_again_when_the_only_pop_was_declined(story: Story) -> None:
    await story.running("a", 3, 5)
    await decline(story, "a", 5)
    day = await story.day("wait")
    assert (day["total"], float(day["mean"]), float(day["vk"])) == ("0", 0, 0)


async def test_job_fails_when_it_was_declined_for_the_timeout(story: Story) -> None:
    await story.put("a", 3)
    await story.pop(1000)
    assert await decline(story, "a", 1000) == "scheduled"
    await story.pop(1599)
    assert await decline(story, "a", 1599) == "scheduled"
    await story.pop(1604)
    assert await decline(story, "a", 1604) == "failed"
    failure = (await story.get("a"))["failure"]
    assert (failure["group"], failure["message"]) == ("mail-UnknownKlass", "no handler")
    assert "x-declined" not in await story.job("a")


async def test_no_timeout_fails_a_job_at_once(story: Story) -> None:
    await story.running("a", 3, 5)
    assert await decline(story, "a", 5, timeout=0) == "failed"


async def test_timeout_counts_anew_after_a_run_and_after_a_put(story: Story) -> None:
    await story.running("a", 3, 5)
    await decline(story, "a", 5)
    await story.pop(10)
    await story.retry("a", 11, delay=3600)
    await story.pop(4000)
    assert await decline(story, "a", 4000) == "scheduled"
    await story.put("a", 8000)
    await story.pop(8000)
    assert await decline(story, "a", 8000) == "scheduled"


async def test_job_that_was_put_back_after_its_failure_has_the_whole_timeout(story: Story) -> None:
    await story.running("a", 3, 5)
    await decline(story, "a", 5, timeout=0)
    await story.store.unfail(queue="mail", group="mail-UnknownKlass", now=5000)
    await story.pop(5000)
    assert await decline(story, "a", 5000) == "scheduled"


async def test_job_that_expires_is_back_in_time_for_another_worker(story: Story) -> None:
    await story.put("a", 3, expires_in=6)
    await story.pop(5)
    await decline(story, "a", 5)
    assert await story.where("a") == {"scheduled": 7}


async def test_declined_pop_is_no_start_of_its_queues_rate(story: Story) -> None:
    await story.configure(**{"mail-rate-limit": "1/60"})
    await story.put("a", 3)
    await story.put("b", 4)
    assert await story.pop(5) == ["a"] and await story.pop(5, worker="bob") == []
    async with story.published() as messages:
        await decline(story, "a", 5)
    assert ("x:ready", "+mail") in messages
    assert await story.pop(5, worker="bob") == ["b"]


async def test_declined_pop_is_no_start_of_its_keys_rate(story: Story) -> None:
    terms = json.dumps({"limits": [{"key": "api", "rate": [1, 60]}]})
    await story.put("a", 3, constraints=terms)
    assert await story.pop(5) == ["a"]
    await decline(story, "a", 5)
    assert await story.scores("x:rate-starts:k:api") == {}
    assert await story.pop(10) == ["a"]


async def test_event_between_pop_and_decline_stays_in_the_history(story: Story) -> None:
    await story.running("a", 3, 5)
    await story.store.log(jid="a", message="noted", now=6)
    await decline(story, "a", 6)
    assert [what for _, what in await story.event_times("a")] == [
        "put",
        "popped",
        "noted",
        "declined",
    ]


async def test_job_popped_by_another_qless_client_can_be_declined(story: Story) -> None:
    await story.running("a", 3, 5)
    await story.change("HDEL", "j:a", "x-put", "x-fence")
    assert await decline(story, "a", 5) == "scheduled"


async def test_only_the_holder_declines(story: Story) -> None:
    await story.put("a", 3)
    async with story.refused(WrongState, jid="a"):
        await decline(story, "a", 4)
    await story.pop(5)
    async with story.refused(LockLost, jid="a"):
        await decline(story, "a", 6, worker="bob")
    async with story.refused(LockLost, jid="a"):
        await decline(story, "a", 6, fence="0")
