"""pop: which jobs a worker gets, in which order, and what is stored."""

import pytest

from tests.lua.story import Story

A_MOMENT = 1353000060.123456


async def test_pop_returns_the_complete_job(story: Story) -> None:
    await story.put("a", 0, data='{"n":1}', tags=["x"], priority=-1, retries=2)
    assert await story.store.pop(queue="mail", worker="ann", count=1, now=1) == [
        {
            "jid": "a", "klass": "Greet", "state": "running", "queue": "mail", "worker": "ann",
            "tracked": False, "priority": -1,
            "retries": 2, "remaining": 2, "expires": 61, "data": '{"n":1}', "tags": ["x"],
            "failure": {}, "spawned_from_jid": False,
            "fence": 1, "dependencies": [], "dependencies_total": 0, "dependents": [],
            "dependents_total": 0,
            "history": [{"when": 0, "what": "put", "q": "mail"},
                {"when": 1, "what": "popped", "worker": "ann"}], "history_total": 2,
        }
    ]  # fmt: skip


async def test_popped_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", 5)
    await story.pop(A_MOMENT)
    stored = await story.job("a")
    assert (stored["state"], stored["worker"], stored["remaining"]) == ("running", "ann", "5")
    assert (stored["expires"], stored["time"]) == (
        "1353000120.123456",
        "1353000060.123456",
    )
    assert await story.where("a") == {"locks": A_MOMENT + 60}
    assert await story.scores("w:ann:jobs") == {"a": A_MOMENT + 60}
    assert await story.scores("workers") == {"ann": A_MOMENT}
    assert (await story.items("j:a-history"))[
        1
    ] == '[1353000060,"popped",{"worker":"ann"},0.123456]'


async def test_jobs_of_one_priority_run_in_the_order_they_were_put(story: Story) -> None:
    for at, jid in enumerate(("c", "a", "b")):
        await story.put(jid, A_MOMENT + at / 1000)
    assert await story.pop(A_MOMENT + 1, count=3) == ["c", "a", "b"]


async def test_jobs_put_at_the_very_same_time_run_by_descending_jid(story: Story) -> None:
    for jid in ("b", "c", "a"):
        await story.put(jid, 0)
    assert await story.pop(1, count=3) == ["c", "b", "a"]


async def test_waiting_jid_without_a_job_is_removed(story: Story) -> None:
    await story.put("a", 1)
    await story.change("ZADD", "q:mail-work", 5, "ghost")
    assert await story.pop(2, count=2) == ["a"]
    assert await story.scores("q:mail-work") == {}


# How long a lock lasts


@pytest.mark.parametrize(
    ("options", "lasts"),
    [
        ({}, 60),
        ({"heartbeat": 30}, 30),
        ({"heartbeat": 30, "heartbeat_mail": 20}, 20),
        ({"heartbeat": 30, "mail_heartbeat": 10}, 10),
        ({"heartbeat": 30, "post_heartbeat": 10}, 30),
        ({"heartbeat": 0.5}, 0.5),
    ],
)
async def test_lock_duration_is_that_of_the_queue_or_else_the_default(
    story: Story, options: dict[str, float], lasts: float
) -> None:
    await story.configure(**options)
    await story.put("a", 0)
    await story.pop(1)
    assert (await story.get("a"))["expires"] == 1 + lasts


async def test_qless_spelling_of_a_queue_heartbeat_takes_precedence(
    story: Story,
) -> None:
    await story.change(
        "HSET", "config", "heartbeat-mail", "20", "mail-heartbeat", "10", "heartbeat", "30"
    )
    await story.running("a")
    assert (await story.get("a"))["expires"] == 11


async def test_specified_spelling_of_a_queue_heartbeat_is_read(story: Story) -> None:
    await story.change("HSET", "config", "heartbeat-mail", "20", "heartbeat", "30")
    await story.running("a")
    assert (await story.get("a"))["expires"] == 21


# Scheduled jobs


async def test_scheduled_jid_without_a_job_is_removed(story: Story) -> None:
    await story.change("ZADD", "q:mail-scheduled", 1, "ghost")
    await story.put("a", 0)
    assert await story.pop(2, count=2) == ["a"]
    assert await story.scores("q:mail-scheduled") == {}


async def test_pop_takes_expired_locks_first_then_due_and_waiting_jobs_by_priority(
    story: Story,
) -> None:
    await story.configure(grace_period=0)
    await story.running("lapsed", worker="bob")
    await story.put("urgent", 2, priority=-5)
    await story.put("due", 3, delay=1, priority=-6)
    await story.put("waiting", 4)
    assert await story.pop(61, count=4) == ["lapsed", "due", "urgent", "waiting"]


# Paused queues and limits


async def test_paused_queue_returns_nothing_and_does_not_register_the_worker(
    story: Story,
) -> None:
    await story.put("a", 0)
    await story.store.pause(queues=["mail"])
    async with story.unchanged():
        assert await story.pop(1) == []
    await story.store.unpause(queues=["mail"])
    assert await story.pop(2) == ["a"]


async def test_concurrency_limit_of_a_queue_is_kept(story: Story) -> None:
    await story.configure(mail_max_concurrency=2)
    for jid in ("a", "b", "c"):
        await story.put(jid, ord(jid))
    assert await story.pop(200, count=5) == ["a", "b"]
    assert await story.pop(201, count=5, worker="bob") == []
    await story.complete("a", 202)
    assert await story.pop(203, count=5) == ["c"]


# Silent workers


async def test_pop_deregisters_workers_that_were_silent_for_a_day(
    story: Story,
) -> None:
    await story.running("a", worker="bob")
    assert await story.pop(86400.5, queue="post") == []
    assert set(await story.scores("workers")) == {"ann", "bob"}
    assert await story.pop(86401, queue="post") == []
    assert (await story.scores("workers"), await story.scores("w:bob:jobs")) == ({"ann": 86401}, {})
    assert await story.where("a") == {"locks": 61}, "the job's lock is another matter"


async def test_max_worker_age_is_configurable_and_a_pop_deregisters_at_most_ten(
    story: Story,
) -> None:
    await story.configure(max_worker_age=100)
    for n in range(12):
        await story.pop(n, worker=f"w{n}")
    await story.pop(200)
    assert await story.scores("workers") == {"w10": 10, "w11": 11, "ann": 200}
    await story.pop(201)
    assert await story.scores("workers") == {"ann": 201}
