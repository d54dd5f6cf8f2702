"""Reviews of what other clients did look at a bounded number of jobs per call, and at all."""

from typing import Any

from tests.lua.bounds.many_jobs import A_MOMENT, FAILURE, MANY, MEMBERS, Gauge, count, crowd
from tests.lua.check.all_states import note
from tests.lua.story import Story

LOOKS = 800  # jobs that a call looks at
SLACK = 100  # commands


async def review(story: Story, gauge: Gauge, at: float) -> int:
    """Call agenda until nothing is due; return how many calls that took."""
    calls = 0
    while await story.ask("ZCOUNT", story.key("x:agenda"), "-inf", at):
        await gauge("agenda", now=at)
        calls += 1
    return calls


async def test_large_set_is_reviewed_in_portions(story: Story, gauge: Gauge) -> None:
    row = {"queue": "mail", "jid": "new", "klass": "K", "data": "{}"}
    await story.call("set_put", set_name="i", now=0, batch=[row])
    fields: dict[str, Any] = {"x-constraints": '{"set":1}'}
    await crowd(story, MANY, "completed", "complete", queue="", **fields)
    await story.ask("EVAL", MEMBERS, 1, story.key("x:set:1:open"), 0, MANY - 1, "j")
    assert await review(story, gauge, 20) >= MANY // LOOKS
    assert await story.members("x:set:1:open") == {"new"}
    assert gauge.most <= LOOKS * 5 + SLACK
    due = await story.reviewed("set", "1")
    assert due is not None and due >= 40


async def test_many_failures_are_reviewed_in_portions(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "f:typo", "failed", failure=FAILURE.replace("#", f"{A_MOMENT}"))
    await story.change("SADD", "failures", "typo")
    branch = '{"queue":"help","klass":"Apologize","data":"{}"}'
    await story.store.on_failure_declare(klass="K", job=branch, now=A_MOMENT - 1)
    assert await review(story, gauge, A_MOMENT + 19) > MANY // LOOKS
    assert await count(story, "q:help-work") == MANY
    assert gauge.most <= LOOKS * 4 + SLACK
    due = await story.reviewed("failures")
    assert due is not None and due - A_MOMENT >= 39 + MANY / 2000


async def test_many_jobs_with_steps_are_reviewed_in_portions(story: Story, gauge: Gauge) -> None:
    fields: dict[str, Any] = {"x-steps": "1"}
    await crowd(story, MANY, "q:mail-work", "waiting", **fields)
    notes = {note("review steps", f"j{number}"): 20 for number in range(MANY)}
    await story.redis.zadd(story.key("x:agenda"), notes)
    assert await review(story, gauge, 20) == MANY // 100
    assert await count(story, "x:agenda") == MANY
    assert gauge.most <= 100 * 5 + SLACK
    due = await story.reviewed("steps", "j0")
    assert due is not None and due >= 40 + MANY / 200 - 1
