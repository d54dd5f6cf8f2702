"""retry: repeats a run and uses one of the job's retries."""

import pytest

from tests.lua.story import Story, score


async def test_retried_job_waits_again_with_one_retry_less(story: Story) -> None:
    await story.running("a", retries=3, priority=-2)
    assert await story.retry("a", 5) == 2
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == ({"work": score(2, 5)}, {})
    stored = await story.job("a")
    assert (stored["state"], stored["remaining"], stored["retries"], stored["queue"]) == (
        "waiting",
        "2",
        "3",
        "mail",
    )


async def test_retry_is_an_event_with_the_last_line_of_its_error(story: Story) -> None:
    await story.running("a")
    await story.retry("a", 5, group="net", message="Traceback:\n  File\nOSError: down\n")
    assert await story.event_times("a") == [(0, "put"), (1, "popped"), (5, "retried")]
    (record,) = await story.store.multiget(jids=["a"])
    assert record["history"][-1]["error"] == "OSError: down"


async def test_explicit_retry_is_counted_in_a_field_of_ours_beside_lost_locks(story: Story) -> None:
    await story.configure(grace_period=0)
    await story.running("a")
    assert await story.pop(61) == ["a"]
    for at in (62, 63):
        await story.retry("a", at)
        assert await story.pop(at) == ["a"]
    assert await story.day() == {"retries": "1", "x-retries": "2"}
    parts = {"retries": 3, "lost_locks": 1, "explicit_retries": 2}
    today = await story.store.queues(now=70, queue="mail", totals="today")
    (day,) = await story.store.days(queue="mail", date=70, count=1)
    for counted in (await story.store.stats(queue="mail", date=70), today, day):
        assert {name: counted[name] for name in parts} == parts


async def test_retry_with_a_group_and_a_message_leaves_a_record_of_why(story: Story) -> None:
    await story.running("a")
    await story.retry("a", 5.9, group="net", message="down")
    assert (await story.job("a"))[
        "failure"
    ] == '{"group":"net","message":"down","when":5,"worker":"ann"}'
    assert (await story.members("failures"), await story.items("f:net")) == (set(), []), (
        "the job has not failed"
    )


async def test_job_fails_with_a_negative_reply_after_the_allowed_retries(
    story: Story,
) -> None:
    await story.put("a", 0, retries=2)
    answers = []
    for at in (1, 3, 5):
        assert await story.pop(at) == ["a"]
        answers.append(await story.retry("a", at + 1))
    assert answers == [1, 0, -1]
    assert (await story.state("a"), await story.pop(9)) == ("failed", [])


async def test_exhausted_job_is_stored_as_failed(story: Story) -> None:
    await story.running("a", retries=0)
    assert await story.retry("a", 2.9, delay=10) == -1
    stored = await story.job("a")
    assert (
        stored["state"],
        stored["worker"],
        stored["expires"],
        stored["remaining"],
        stored["queue"],
    ) == ("failed", "", "", "-1", "mail")
    text = (
        '{"group":"failed-retries-mail","message":"Job exhausted retries in queue '
        '\\"mail\\"","when":2,"worker":"ann"}'
    )
    assert stored["failure"] == text
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == ({}, {})
    assert (await story.items("f:failed-retries-mail"), await story.members("failures")) == (
        ["a"],
        {"failed-retries-mail"},
    )
    assert (await story.items("j:a-history"))[2:] == [
        '[2,"failed",{"group":"failed-retries-mail"},0.900000]'
    ]
    assert await story.day() == {"failures": "1", "failed": "1"}


async def test_put_of_a_retried_job_publishes_no_lock_lost(story: Story) -> None:
    await story.running("a")
    await story.retry("a", 2)
    async with story.published("x:ready") as messages:
        await story.put("a", 3)
    assert messages == [("log", {"event": "put", "jid": "a", "queue": "mail"})]


@pytest.mark.parametrize("retries", [0, 1])
async def test_retry_stores_data_also_when_none_is_left(story: Story, retries: int) -> None:
    await story.running("a", retries=retries)
    await story.retry("a", 3, data="[ 2]")
    stored = await story.job("a")
    assert (stored["data"], stored["state"]) == ("[ 2]", "waiting" if retries else "failed")
