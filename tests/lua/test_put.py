"""put and requeue: creates a job, or moves an existing one."""

import time
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, LockLost, WrongState
from tests.lua.story import Story, score

A_MOMENT = 1353000060.123456


# A new job


async def test_new_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", A_MOMENT, data='{"n": 1}', priority=-3, tags=["x", "y"], retries=2)
    assert await story.job("a") == {
        "jid": "a", "klass": "Greet", "data": '{"n": 1}', "priority": "3", "tags": '["x","y"]',
        "state": "waiting",
        "queue": "mail", "retries": "2", "remaining": "2",
        "time": "1353000060.123456",
        "history": '[{"q":"mail","put":1353000060.123456}]',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("at", "put"),
    [(1.9, '[1,"put",{"q":"mail"},0.900000]'), (2, '[2,"put",{"q":"mail"}]')],
)
async def test_put_is_in_the_hash_until_the_next_event(story: Story, at: float, put: str) -> None:
    await story.put("a", at)
    assert await story.items("j:a-history") == []
    assert [(event["what"], event["when"]) for event in (await story.get("a"))["history"]] == [
        ("put", at)
    ]
    assert await story.pop(3) == ["a"]
    assert await story.items("j:a-history") == [put, '[3,"popped",{"worker":"ann"}]']
    assert (await story.job("a"))["history"] == "[]"


@pytest.mark.parametrize("queue", ['say "no"', "back\\slash", "grüße", "a]}b"])
async def test_put_of_an_odd_queue_keeps_its_name(story: Story, queue: str) -> None:
    await story.put("a", 1.5, queue=queue)
    assert await story.pop(3, queue=queue) == ["a"]
    put, _ = (await story.get("a"))["history"]
    assert (put["what"], put["q"], put["when"]) == ("put", queue, 1.5)


async def test_queue_may_be_named_by_its_whole_key(story: Story) -> None:
    await story.by_hand("put", [story.key("q:mail")], "a", "Greet", "{}", 0, 0)
    assert (await story.job("a"))["queue"] == "mail"


async def test_without_a_time_the_servers_clock_is_read(story: Story) -> None:
    before = time.time()
    await story.store.put(queue="mail", jid="a", klass="Greet", data="{}", delay=0)
    assert before - 1 <= float((await story.job("a"))["time"]) <= time.time() + 1


@pytest.mark.parametrize("number", ["0x10", " 16 ", "1.6e1", "16.0"])
async def test_numbers_are_parsed_leniently(story: Story, number: str) -> None:
    await story.by_hand(
        "put", ["mail"], "a", "Greet", "{}", number, number, "priority", number, "retries", number
    )
    stored = await story.job("a")
    assert (stored["time"], stored["priority"], stored["retries"]) == (
        "16." + 6 * "0",
        "-16",
        "16",
    )
    assert await story.where("a") == {"scheduled": 32}


# Data


@pytest.mark.parametrize(
    "data",
    [
        "[]",
        "{}",
        "null",
        "0",
        '""',
        "true",
        "12345678901234567",
        "1.0",
        "-0",
        '{"b":1,  "a" : [ ] }',
        '"\\u00e9\\u0000é"',
        "[[],{}]",
        " [1]\n",
    ],
)
async def test_data_is_kept_byte_for_byte(story: Story, data: str) -> None:
    await story.put("a", 0, data=data)
    assert (await story.job("a"))["data"] == data
    assert (await story.get("a"))["data"] == data


async def test_data_that_clients_have_checked_is_stored_as_it_is(story: Story) -> None:
    unchecked = "x" * 70_000
    await story.put("a", 0, data=unchecked)
    assert (await story.job("a"))["data"] == unchecked


# Priority


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "-1"),
        (-10, "10"),
        (0.1, "-0.10000000000000001"),
        (-100, "100"),
    ],
)
async def test_sign_of_the_priority_is_inverted_in_redis(
    story: Story, said: float, stored: str
) -> None:
    await story.put("a", 0, priority=said)
    assert (await story.job("a"))["priority"] == stored
    assert (await story.get("a"))["priority"] == said


async def test_negative_priorities_run_sooner(story: Story) -> None:
    for jid, priority in (("later", 1), ("soon", -1), ("normal", 0), ("sooner", -1.5)):
        await story.put(jid, 0, priority=priority)
    assert await story.pop(1, count=4) == ["sooner", "soon", "normal", "later"]


# Delay


async def test_delayed_job_is_scheduled_for_its_due_time(story: Story) -> None:
    await story.put("a", 10, delay=5)
    assert await story.where("a") == {"scheduled": 15}
    assert await story.state("a") == "scheduled"
    assert await story.pop(14.9) == []
    assert await story.pop(15) == ["a"]


async def test_job_with_a_time_is_scheduled_for_it_whatever_its_delay(story: Story) -> None:
    await story.put("a", 10, delay=99, at=15)
    await story.put("b", 10, depends=["a"], at=20)
    assert await story.where("a") == {"scheduled": 15}
    assert (await story.job("b"))["scheduled"] == "20"


async def test_job_whose_time_has_passed_is_waiting(story: Story) -> None:
    await story.put("a", 10, at=9)
    assert await story.state("a") == "waiting"


# Dependencies


async def test_dependent_job_is_held_and_linked_both_ways(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    assert await story.state("b") == "depends"
    assert await story.where("b") == {"depends": 1}
    assert (await story.members("j:b-dependencies"), await story.members("j:a-dependents")) == (
        {"a"},
        {"b"},
    )
    assert ((await story.get("b"))["dependencies"], (await story.get("a"))["dependents"]) == (
        ["a"],
        ["b"],
    )
    assert await story.pop(2, count=10) == ["a"]


async def test_dependencies_that_are_unknown_or_complete_count_as_satisfied(story: Story) -> None:
    await story.completed("done")
    await story.put("a", 3, depends=["done", "unknown"])
    assert await story.state("a") == "waiting"
    assert not await story.exists("j:a-dependencies")
    assert not await story.exists("j:done-dependents")


async def test_failed_job_still_holds_its_dependents(story: Story) -> None:
    await story.failed("a")
    await story.put("b", 3, depends=["a"])
    assert await story.state("b") == "depends"


# Existing jobs


async def test_put_of_an_existing_job_moves_it_and_keeps_other_options(story: Story) -> None:
    await story.put("a", 0, priority=-2, tags=["x"], retries=3)
    await story.put("a", 1, queue="post", klass="Send", data="[1]")
    job = await story.get("a")
    assert (job["queue"], job["klass"], job["data"]) == ("post", "Send", "[1]")
    assert (job["priority"], job["tags"], job["retries"]) == (-2, ["x"], 3)
    assert (await story.where("a"), await story.where("a", "post")) == ({}, {"work": score(2, 1)})
    assert await story.items("j:a-history") == ['[0,"put",{"q":"mail"}]', '[1,"put",{"q":"post"}]']


async def test_former_worker_of_a_moved_job_can_neither_renew_nor_complete(
    story: Story,
) -> None:
    await story.running("a")
    await story.put("a", 2, queue="post")
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == ({}, {})
    assert ((await story.job("a"))["worker"], (await story.job("a"))["expires"]) == ("", "0")
    async with story.refused(WrongState, jid="a", state="waiting"):
        await story.heartbeat("a", 3)
    async with story.refused(WrongState, jid="a", state="waiting"):
        await story.complete("a", 3)
    assert await story.pop(4, queue="post", worker="bob") == ["a"]
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.heartbeat("a", 5)
    async with story.refused(LockLost, jid="a", holder="bob"):
        await story.complete("a", 5, queue="post")


async def test_failed_job_that_is_put_leaves_its_group(story: Story) -> None:
    await story.failed("a")
    await story.failed("b", 2, 3, 4)
    await story.put("a", 5)
    assert (await story.items("f:typo"), await story.members("failures")) == (["b"], {"typo"})
    await story.put("b", 5)
    assert (await story.items("f:typo"), await story.members("failures")) == ([], set())
    assert (await story.get("a"))["failure"]["group"] == "typo", "the record stays until completion"


async def test_move_removes_unnamed_dependencies_on_both_sides(
    story: Story,
) -> None:
    for jid in ("a", "b", "c"):
        await story.put(jid, 0)
    await story.put("d", 1, depends=["a", "b"])
    await story.put("d", 2, depends=["b", "c"])
    assert await story.members("j:d-dependencies") == {"b", "c"}
    assert (await story.members("j:a-dependents"), await story.members("j:b-dependents")) == (
        set(),
        {"d"},
    )


async def test_move_without_depends_keeps_the_dependencies(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    await story.put("b", 2, queue="post")
    assert (await story.where("b"), await story.where("b", "post")) == ({}, {"depends": 2})
    assert (await story.state("b"), await story.members("j:b-dependencies")) == ("depends", {"a"})


async def test_job_with_an_invalid_jid_of_another_client_can_be_moved_by_requeue_only(
    story: Story,
) -> None:
    await story.put("a", 0)
    await story.change("RENAME", "j:a", story.key("j:a-history-history"))
    await story.change("HSET", "j:a-history-history", "jid", "a-history-history")
    async with story.refused(InvalidArgument, argument="jid"):
        await story.put("a-history-history", 1)
    requeued = await story.store.requeue(
        queue="post", jid="a-history-history", klass="Greet", data="{}", now=1, delay=0
    )
    assert requeued == "a-history-history"


# requeue


async def test_requeue_moves_a_job_as_put_does(story: Story) -> None:
    await story.failed("a", priority=-1, tags=["x"])
    given: dict[str, Any] = {
        "klass": "Send",
        "data": "[2]",
        "now": 3,
        "delay": 10,
        "retries": 1,
        "depends": ["unknown"],
        "priority": -4,
        "tags": ["y"],
    }
    assert await story.store.requeue(queue="post", jid="a", **given) == "a"
    job = await story.get("a")
    assert (job["queue"], job["klass"], job["data"], job["retries"], job["priority"]) == (
        "post",
        "Send",
        "[2]",
        1,
        -4,
    )
    assert (await story.where("a", "post"), await story.items("f:typo"), job["tags"]) == (
        {"scheduled": 13},
        [],
        ["y"],
    )
