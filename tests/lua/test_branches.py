"""A failure puts the branch of its job, and that of its handler, once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from tests.lua.story import Story
from tests.lua.test_full_memory import full

REFUND = {"queue": "money", "klass": "Refund", "data": '{"order": 7}'}


def branch(**more: str) -> str:
    return json.dumps(REFUND | more)


async def cause(story: Story, jid: str) -> Any:
    return json.loads((await story.job(jid))["x-cause"])


async def fail_as_qless(story: Story, jid: str, at: int, group: str = "typo") -> None:
    """Fail a running job with the writes of live qless, which knows of no branches."""
    failure = {"group": group, "message": "oh", "when": at, "worker": "ann"}
    await story.change("ZREM", "q:mail-locks", jid)
    await story.change("ZREM", "w:ann:jobs", jid)
    await story.change(
        "HSET", f"j:{jid}", "state", "failed", "worker", "", "expires", "",
        "failure", json.dumps(failure),
    )  # fmt: skip
    await story.change("SADD", "failures", group)
    await story.change("LPUSH", f"f:{group}", jid)


async def test_failure_puts_the_branch_with_what_failed(story: Story) -> None:
    await story.failed("a", on_failure=branch(priority="3", tags='["x"]', retries="2"))
    put = await story.get("a-failure-1")
    assert (put["klass"], put["queue"], put["data"]) == ("Refund", "money", '{"order": 7}')
    assert (put["priority"], put["tags"], put["retries"]) == (3, ["x"], 2)
    assert await cause(story, "a-failure-1") == {
        "jid": "a",
        "klass": "Greet",
        "group": "typo",
        "message": "no such word",
        "data": "{}",
    }
    assert await story.pop(3, queue="money") == ["a-failure-1"]


async def test_branch_can_be_delayed_and_limited(story: Story) -> None:
    limits = '{"limits": [{"key": "bank", "limit": 1}]}'
    await story.failed("a", on_failure=branch(delay="60", constraints=limits))
    assert await story.state("a-failure-1") == "scheduled"
    assert await story.pop(63, queue="money") == ["a-failure-1"]
    await story.failed("b", 70, 71, 72, on_failure=branch(constraints=limits))
    assert await story.pop(73, queue="money") == []


async def test_failure_of_a_branch_and_of_a_dependent_have_no_branch(story: Story) -> None:
    await story.store.on_failure_declare(klass="Refund", job=branch(klass="Alert"), now=0)
    await story.put("b", 0, depends=["a"], if_dependency_fails="fail", on_failure=branch())
    await story.put("a", 0, on_failure=branch())
    await story.put("b", 0, depends=["a"], if_dependency_fails="fail", on_failure=branch())
    assert await story.pop(1) == ["a"]
    await story.fail("a", 2)
    assert await story.state("b") == "failed"
    assert await story.pop(3, queue="money", count=9) == ["a-failure-1"]
    await story.fail("a-failure-1", 4)
    assert await story.counts(5, "money") == {}


async def test_handler_has_a_branch_for_all_jobs_of_its_klass(story: Story) -> None:
    await story.store.on_failure_declare(klass="Greet", job=branch(klass="Alert"), now=0)
    await story.failed("a")
    await story.failed("b", 3, 4, 5, on_failure=branch())
    await story.failed("c", 6, 7, 8, klass="Other")
    assert await story.pop(9, queue="money", count=9) == [
        "a-handler-failure-1",
        "b-failure-1",
        "b-handler-failure-1",
    ]
    await story.store.on_failure_off(klasses=["Greet"])
    await story.failed("d", 10, 11, 12)
    assert await story.counts(13, "money") == {"running": 3}


async def test_branch_is_put_into_a_full_queue_and_a_full_redis(story: Story) -> None:
    await story.configure(money_max_length=1)
    await story.put("one", 0, queue="money")
    await story.running("a", 0, 1, on_failure=branch())
    async with full(story):
        await story.fail("a", 2)
        assert await story.state("a-failure-1") == "waiting"


async def test_taken_unique_key_leaves_the_other_job_alone(story: Story) -> None:
    alone = '{"unique": "order-7", "until": "done"}'
    await story.put("other", 0, queue="money", constraints=alone)
    await story.failed("a", on_failure=branch(constraints=alone))
    assert await story.counts(3, "money") == {"waiting": 1}
    assert "x-cause" not in await story.job("other")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"queue": "q", "klass": "K"}',
        '{"queue": "q", "klass": "", "data": "1"}',
        '{"queue": "q", "klass": "K", "data": "false"}',
        '{"queue": "q", "klass": "K", "data": {}}',
        '{"queue": "q", "klass": "K", "data": "1", "delay": "-1"}',
        '{"queue": "q", "klass": "K", "data": "1", "priority": "high"}',
        '{"queue": "q", "klass": "K", "data": "1", "tags": "a"}',
        json.dumps(REFUND | {"constraints": '{"if_exists": "raise"}'}),
    ],
)
async def test_branch_that_could_not_be_put_is_refused(story: Story, text: str) -> None:
    async with story.refused(InvalidArgument):
        await story.put("a", 0, on_failure=text)
    async with story.refused(InvalidArgument):
        await story.store.on_failure_declare(klass="K", job=text, now=0)
    async with story.refused(InvalidArgument):
        await story.store.put_flow(
            now=0,
            batch=[
                {"queue": "q", "jid": "b", "klass": "K", "data": "1"},
                {"queue": "q", "jid": "a", "klass": "K", "data": "1", "on_failure": text},
            ],
        )


# Failures that other clients store


async def review(story: Story, at: float) -> float | None:
    """Tick until nothing is due; return when failures are next reviewed."""
    while True:
        await story.tick(at)
        next_review = await story.reviewed("failures")
        if not await story.noted() and (next_review is None or next_review > at):
            return next_review


async def test_review_finds_what_another_client_failed_once(story: Story) -> None:
    await story.running("a", 100, 101, on_failure=branch())
    await fail_as_qless(story, "a", 102)
    assert await review(story, 119) == 120
    assert await story.counts(119, "money") == {}
    assert await review(story, 121) == pytest.approx(141, abs=0.01)
    assert (await cause(story, "a-failure-1"))["message"] == "oh"
    assert await review(story, 170) == pytest.approx(190, abs=0.01)
    assert await story.counts(171, "money") == {"waiting": 1}


async def test_review_leaves_what_a_script_has_handled(story: Story) -> None:
    await story.failed("a", 100, 101, 102, on_failure=branch())
    await review(story, 120)
    assert await story.counts(121, "money") == {"waiting": 1}


async def test_review_sees_each_failure_of_a_job(story: Story) -> None:
    await story.failed("a", 100, 101, 102, on_failure=branch())
    await story.store.revive_job(jid="a", now=110)
    assert await story.pop(111) == ["a"]
    await fail_as_qless(story, "a", 112)
    await review(story, 120)
    assert await story.pop(121, queue="money", count=9) == ["a-failure-1", "a-failure-2"]


async def test_review_leaves_failures_from_before_the_declaration(story: Story) -> None:
    await story.failed("a", 100, 101, 102)
    await story.store.on_failure_declare(klass="Greet", job=branch(), now=110)
    await review(story, 130)
    await story.store.on_failure_declare(klass="Greet", job=branch(), now=131)
    await story.running("b", 132, 133)
    await fail_as_qless(story, "b", 134)
    await review(story, 161)
    assert await story.pop(162, queue="money", count=9) == ["b-handler-failure-1"]


async def test_review_applies_the_policies_of_dependents(story: Story) -> None:
    await story.running("a", 100, 101)
    await story.put("b", 102, depends=["a"], if_dependency_fails="fail")
    await story.put("c", 103, depends=["a"], if_dependency_fails="run")
    await fail_as_qless(story, "a", 104)
    await review(story, 122)
    assert (await story.state("b"), await story.state("c")) == ("failed", "waiting")


async def test_review_continues_in_the_next_call(story: Story) -> None:
    for number in range(1500):
        await story.put(f"j{number}", 100, on_failure=branch())
    assert len(await story.pop(101, count=1000)) == 1000
    assert len(await story.pop(102, count=1000)) == 500
    for number in range(1500):
        await fail_as_qless(story, f"j{number}", 103, f"g{number % 2}")
    await story.tick(120)
    assert await story.reviewed("failures") == 120
    assert 400 <= len(await story.noted()) < 1500
    assert await review(story, 120) == pytest.approx(140 + 1500 / 2000, abs=0.1)
    assert await story.counts(121, "money") == {"waiting": 1500}


async def test_nothing_is_reviewed_where_no_failure_matters(story: Story) -> None:
    await story.failed("a")
    async with story.unchanged():
        assert await review(story, 300) is None
