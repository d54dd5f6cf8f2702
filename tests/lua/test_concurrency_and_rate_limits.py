"""Concurrency limits and rate limits of keys and queues."""

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from aioqless.store import PopManyRow
from tests.lua.story import Story, score


def constrained(*limits: dict[str, Any]) -> dict[str, Any]:
    return {"constraints": json.dumps({"limits": limits})}


def limited(limit: int = 1, key: str = "k") -> dict[str, Any]:
    return constrained({"key": key, "limit": limit})


def rated(many: int, seconds: float, key: str = "k") -> dict[str, Any]:
    return constrained({"key": key, "rate": [many, seconds]})


ONE = limited()


async def _due(story: Story, at: float, *queues: str, worker: str = "zoe") -> str:
    """Return when pop_many, which found too few jobs, wants to be called again."""
    batch: list[PopManyRow] = [{"queue": queue} for queue in queues or ("mail",)]
    due = (
        await story.store.pop_many(worker=worker, count=100, now=at, order="ordered", batch=batch)
    )[1]
    return str(due)


# Concurrency limits


@pytest.mark.parametrize(
    "end",
    ["complete", "advance", "fail", "retry", "release", "cancel", "timeout", "put", "give back"],
)
async def test_end_of_a_run_lets_the_next_job_of_its_key_start(story: Story, end: str) -> None:
    await story.running("a", **ONE)
    await story.put("b", 2, **ONE)
    await story.put("c", 3, **ONE)
    assert await story.pop(4, count=9) == []
    match end:
        case "complete":
            await story.complete("a", 5)
        case "advance":
            await story.complete("a", 5, next="post")
        case "fail":
            await story.fail("a", 5)
        case "retry":
            await story.retry("a", 5, delay=100)
        case "release":
            await story.release("a", 5, delay=100)
        case "cancel":
            await story.cancel("a")
        case "timeout":
            await story.timeout("a", at=5)
            await story.cancel("a")
        case "put":
            await story.put("a", 5, queue="post")
        case _:
            await story.store.complete_many(
                worker="ann", now=5, batch=[{"jid": "a", "queue": "mail"}]
            )
    assert (await story.state("b"), await story.state("c")) == ("waiting", "scheduled")
    assert await story.pop(6, count=9) == ["b"]


async def test_delayed_jobs_of_a_key_keep_their_order(story: Story) -> None:
    await story.running("first", **ONE)
    for at, (jid, priority) in enumerate((("b", 0), ("a", 0), ("urgent", -5), ("c", 0)), 2):
        await story.put(jid, at, priority=priority, **ONE)
    served = ["first"]
    for at in range(10, 14):
        assert await story.pop(at, count=9) == []
        await story.complete(served[-1], at)
        served += await story.pop(at, count=9)
    assert served == ["first", "urgent", "b", "a", "c"]


async def test_changed_priority_reorders_delayed_jobs(story: Story) -> None:
    await story.running("first", **ONE)
    await story.put("a", 2, **ONE)
    await story.put("b", 3, **ONE)
    await story.pop(4, count=9)
    await story.store.priority(jid="b", priority=-1)
    await story.complete("first", 5)
    assert await story.pop(6, count=9) == ["b"]
    assert await story.scores("x:held-back:k") == {"a": score(0, 2)}


async def test_idle_workers_are_notified_when_a_delayed_job_may_start(story: Story) -> None:
    await story.running("a", **ONE)
    await story.put("b", 2, **ONE)
    await story.pop(3)
    async with story.published("log") as messages:
        await story.complete("a", 4)
    assert ("x:ready", "+mail") in messages


async def test_expired_lock_of_a_dead_worker_frees_the_key(
    story: Story,
) -> None:
    await story.running("a", queue="left", **ONE)
    await story.put("b", 2, **ONE)
    assert await story.pop(3, count=9) == []
    assert await _due(story, 3) == "68"
    assert await story.pop(70, worker="bob") == []
    assert await story.pop(71, worker="bob") == ["b"]


async def test_running_job_removed_by_another_client_frees_its_key(story: Story) -> None:
    await story.running("a", **ONE)
    await story.put("b", 2, **ONE)
    await story.pop(3)
    for key in ("j:a", "q:mail-locks", "w:ann:jobs"):
        await story.change("DEL", key)
    assert await story.pop(72, worker="bob") == ["b"]


async def test_deleted_delayed_job_is_skipped(story: Story) -> None:
    await story.running("a", **ONE)
    await story.put("b", 2, **ONE)
    await story.put("c", 3, **ONE)
    await story.pop(4, count=9)
    await story.change("ZREM", "q:mail-scheduled", "b")
    await story.complete("a", 5)
    assert await story.pop(6, count=9) == ["c"]


async def test_delayed_job_can_be_moved_to_another_queue(story: Story) -> None:
    await story.running("a", **ONE)
    await story.put("b", 2, **ONE)
    await story.pop(3)
    await story.store.move(queue="post", jid="b", now=4)
    assert await story.pop(5, queue="post") == []
    await story.complete("a", 6)
    assert await story.pop(7, queue="post") == ["b"]


async def test_pop_examines_a_bounded_number_of_jobs_and_the_next_continues(story: Story) -> None:
    await story.running("holder", **ONE)
    for n in range(120):
        await story.put(f"a{n:03}", n, **ONE)
    await story.put("free", 200)
    popped = [await story.pop(300 + n, count=1, worker="bob") for n in range(8)]
    assert popped.index(["free"]) > 0


async def test_pop_that_reached_its_bound_requests_an_immediate_pop(story: Story) -> None:
    await story.configure(heartbeat=5000)
    await story.running("holder", **ONE)
    for n in range(120):
        await story.put(f"a{n:03}", n + 2, **ONE)
    batch: list[PopManyRow] = [{"queue": "mail"}]
    rows, due, _ = await story.store.pop_many(
        worker="bob", count=1, now=300, order="ordered", batch=batch
    )
    assert (rows, due) == ([], "0.001")
    assert (await story.counts(300))["waiting"] == 95


# Rate limits of keys


async def test_rate_limit_of_a_key_delays_further_starts(
    story: Story,
) -> None:
    for n in range(5):
        await story.put(f"a{n}", n, **rated(2, 60))
    assert await story.pop(10, count=1) == ["a0"]
    assert await story.pop(20, count=9) == ["a1"]
    assert await story.scores("q:mail-scheduled") == {"a2": 70, "a3": 80, "a4": 130}
    assert await _due(story, 21) == "49"
    assert await story.pop(69, count=9, worker="bob") == []
    assert await story.pop(70, count=9, worker="bob") == ["a2"]


# Rate limits of queues


async def test_rate_limit_of_a_queue_returns_when_to_pop_again(
    story: Story,
) -> None:
    await story.configure(mail_rate_limit="3/60")
    for n in range(5):
        await story.put(f"a{n}", n)
    assert await story.pop(10, count=2) == ["a0", "a1"]
    assert await story.pop(20, count=9) == ["a2"]
    assert (await story.pop(30), await story.counts(30)) == ([], {"waiting": 2, "running": 3})
    assert await _due(story, 30) == "40"
    assert await story.pop(70, count=9, worker="bob") == ["a3", "a4"]


async def test_starts_while_the_clock_was_far_ahead_do_not_count(story: Story) -> None:
    await story.configure(mail_rate_limit="2/60")
    for n in range(5):
        await story.put(f"a{n}", n)
    assert await story.pop(100_000, count=9) == ["a0", "a1"]
    (delay,) = await story.store.delays(now=10, queues=["mail"])
    assert (delay["starts"], delay["next_start"]) == (0, 10)
    assert await story.pop(10, worker="bob") == ["a2"]
    assert await story.pop(20, count=9, worker="bob") == ["a3"]
    assert await _due(story, 30) == "40"


@pytest.mark.parametrize("order", ["ordered", "rotation"])
async def test_queue_at_its_limit_leaves_the_count_to_other_queues(
    story: Story, order: str
) -> None:
    await story.configure(A_rate_limit="1/60")
    for n in range(2):
        await story.put(f"a{n}", n, queue="A")
        await story.put(f"b{n}", n, queue="B")
    batch: list[PopManyRow] = [{"queue": "A"}, {"queue": "B"}]
    rows, _, _ = await story.store.pop_many(worker="ann", count=3, now=10, order=order, batch=batch)
    assert sorted(row[0] for row in rows) == [b"a0", b"b0", b"b1"]


# Refusals


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"key": "k"}, "key"),
        ({"key": 7, "limit": 1}, "key"),
        ({"limit": 1}, "key"),
        ({"key": "k", "limit": 0}, "limit"),
        ({"key": "k", "limit": 1.5}, "limit"),
        ({"key": "k", "limit": 5000}, "limit"),
        ({"key": "k", "rate": 5}, "rate"),
        ({"key": "k", "rate": [0, 60]}, "rate"),
        ({"key": "k", "rate": [5, 0]}, "rate"),
        ({"key": "k", "rate": [5]}, "rate"),
    ],
)
async def test_invalid_limits_are_refused_by_name(
    story: Story, given: dict[str, Any], argument: str
) -> None:
    async with story.refused(InvalidArgument, argument=argument):
        await story.put("a", 0, **constrained(given))


@pytest.mark.parametrize("value", ["0/60", "5", "5/0", "many/60", "-1/60", "5/", "99999/1"])
async def test_invalid_rate_of_a_queue_is_refused(story: Story, value: str) -> None:
    async with story.refused(InvalidArgument, argument="mail-rate-limit", value=value):
        await story.configure(mail_rate_limit=value)


async def test_delayed_job_names_its_limit_and_time(story: Story) -> None:
    for jid in ("a", "b"):
        await story.put(jid, 0, **ONE)
    for jid in ("c", "d"):
        await story.put(jid, 0, **rated(1, 60, key="r"))
    popped = await story.pop(2, count=9)
    (limited_,), (rated_,) = ({"a", "b"} - set(popped), {"c", "d"} - set(popped))
    held_back = (await story.get(limited_))["held_back"]
    assert (held_back["key"], held_back["limit"], held_back["running"]) == (
        "k",
        1,
        [jid for jid in popped if jid in "ab"],
    )
    assert held_back["until"] == 72  # the other job's lock and its grace period
    assert (await story.get(rated_))["held_back"] == {
        "key": "r",
        "rate": [1, 60],
        "until": 62,
        "used": 0,
    }
    for jid in popped:
        assert "held_back" not in await story.get(jid)
