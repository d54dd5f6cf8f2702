"""Recurring jobs that stand still after a moment in which the clock was a day ahead."""

from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from tests.lua.check.all_states import findings
from tests.lua.story import Story

NOW, DAY = 1_000_000.0, 86_400


async def _review(story: Story, now: float = NOW, page: int = 0) -> Any:
    return await story.store.tick(now=now, batch=[], page=page)


async def test_interval_is_due_at_its_former_rhythm_again(story: Story) -> None:
    await story.recur("r", NOW - 15, interval=60)
    assert await story.pop(NOW + DAY) == ["r-1"]
    assert await story.scores("q:mail-recur") == {"r": NOW + DAY + 45}
    answer = await _review(story, NOW + 1)
    assert answer["moved"] == [{"jid": "r", "former": NOW + DAY + 45, "next": NOW + 45}]
    assert await story.scores("q:mail-recur") == {"r": NOW + 45}
    assert await story.pop(NOW + 44) == []
    assert await story.pop(NOW + 45) == ["r-2"]


async def test_interval_declared_in_that_moment_is_due_within_an_interval(story: Story) -> None:
    await story.store.declare_interval(
        queue="mail",
        jid="r",
        klass="Greet",
        data="{}",
        now=NOW + DAY,
        next=NOW + DAY + 60,
        interval=60,
    )
    await _review(story)
    assert await story.scores("q:mail-recur") == {"r": NOW}


async def test_first_run_that_is_meant_to_be_late_stays(story: Story) -> None:
    await story.recur("r", NOW, interval=60, offset=DAY)
    async with story.unchanged():
        assert (await _review(story))["moved"] == []
        assert await findings(story, resolve="resolve", at=NOW) == []
    await story.store.recur_update(jid="r", pairs=["interval", "120"])
    assert await findings(story, at=NOW) == []
    assert await story.pop(NOW + DAY + 60) == ["r-1"]
    assert [each["jid"] for each in (await _review(story))["moved"]] == ["r"]


@pytest.mark.parametrize("ahead", [-1, 0, 1, 600])
async def test_small_step_of_the_clock_moves_nothing(story: Story, ahead: float) -> None:
    await story.recur("r", NOW, interval=60)
    await story.pop(NOW + ahead + 1)
    async with story.unchanged():
        assert (await _review(story, NOW + 1))["moved"] == []


async def test_template_of_another_client_is_reported_and_not_changed(story: Story) -> None:
    await story.recur("theirs", NOW, interval=60)
    await story.change("HDEL", "r:theirs", "x-first")
    assert await story.pop(NOW + DAY) == ["theirs-1"]
    await story.complete("theirs-1", NOW)
    async with story.unchanged():
        assert (await _review(story))["moved"] == []
        found = await findings(story, resolve="resolve", at=NOW)
    assert [(each["problem"], each["fixed"], each["jid"]) for each in found] == [
        ("recurring-late", False, "theirs")
    ]


async def test_check_finds_an_interval_that_stands_still_and_repairs_it(story: Story) -> None:
    await story.recur("r", NOW, interval=60)
    assert await story.pop(NOW + DAY) == ["r-1"]
    await story.complete("r-1", NOW)
    expected = {"problem": "recurring-late", "jid": "r", "next": NOW + DAY + 60, "due": NOW}
    assert await findings(story, at=NOW) == [{**expected, "fixed": False}]
    assert await findings(story, resolve="resolve", at=NOW) == [{**expected, "fixed": True}]
    assert await findings(story, at=NOW) == []


async def test_cron_expressions_are_listed_for_their_times_to_be_computed(story: Story) -> None:
    await story.cron("soon", NOW, next=NOW + 600)
    await story.cron("late", NOW, next=NOW + DAY)
    answer = await _review(story)
    assert (answer["later"], answer["page"]) == (
        [{"jid": "late", "tick": NOW + DAY, "cron": "0 2 * * *", "timezone": "UTC",
            "backlog": None, "until": None}],
        None,
    )  # fmt: skip
    assert "later" not in await story.tick(NOW)


async def test_tick_that_is_not_due_is_moved_without_an_instance(story: Story) -> None:
    await story.cron("r", NOW, next=NOW + DAY)
    row = ("r", NOW + DAY, NOW + 60, NOW + 60)
    answers = [await story.tick(NOW, row) for _ in range(2)]
    assert [(answer["made"], answer["next"]) for answer in answers] == [([""], NOW + 60)] * 2
    assert await story.scores("x:ticks") == {"r": NOW + 60}
    async with story.refused(InvalidArgument, argument="next"):
        await story.tick(NOW + 60, ("r", NOW + 60, NOW + 60, NOW + 50))
    async with story.refused(InvalidArgument, argument="next"):
        await story.tick(NOW, ("r", NOW + 60, NOW + 60, NOW + 60))


async def test_many_schedules_are_looked_at_a_page_per_call(story: Story) -> None:
    for number in range(150):
        await story.cron(f"r{number}", NOW, next=NOW + DAY + number)
    first, second = await _review(story), await _review(story, page=1)
    assert (len(first["later"]), first["page"]) == (100, 1)
    assert (len(second["later"]), second["page"]) == (50, None)


async def test_job_declined_in_that_moment_fails_in_time(story: Story) -> None:
    states = []
    await story.put("a", NOW)
    for at in (NOW + DAY, NOW, NOW + 599, NOW + 600):
        await story.pop(at, count=1)
        states.append(
            await story.store.decline(
                jid="a",
                worker="ann",
                now=at,
                delay=0,
                timeout=600,
                group="mail-UnknownKlass",
                message="no handler",
            )
        )
    assert states == ["waiting", "waiting", "waiting", "failed"]


async def test_rate_limit_forgets_starts_of_that_moment(story: Story) -> None:
    terms = '{"limits":[{"key":"k","rate":[1,10]}]}'
    await story.put("one", NOW, constraints=terms)
    assert await story.pop(NOW + DAY) == ["one"]
    await story.put("two", NOW, constraints=terms)
    await story.put("three", NOW, constraints=terms)
    assert await story.pop(NOW + 1, count=2) == ["two"]
    assert (await story.where("three"))["scheduled"] == NOW + 11


async def test_rate_limit_counts_starts_before_a_small_step_of_the_clock(story: Story) -> None:
    terms = '{"limits":[{"key":"k","rate":[1,10]}]}'
    await story.put("one", NOW, constraints=terms)
    assert await story.pop(NOW) == ["one"]
    await story.put("two", NOW, constraints=terms)
    assert await story.pop(NOW - 1) == []
