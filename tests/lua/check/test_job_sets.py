"""Damage of job sets is reported, and repaired."""

from __future__ import annotations

import pytest

from tests.lua.check.all_states import Commands, findings, note, problems
from tests.lua.story import Story
from tests.lua.test_job_sets import CALLBACKS, add, close, status

WOUNDS: dict[str, tuple[set[str], Commands, dict[str, object]]] = {
    "an open member is not listed": (
        {"member-unlisted"},
        [("SREM", "x:set:1:open", "a")],
        {"added": 2, "open": 2},
    ),
    "a complete member is listed as open": (
        {"member-elsewhere"},
        [("SADD", "x:set:1:open", "done")],
        {"added": 2, "open": 2},
    ),
    "a waiting member is listed as failed": (
        {"member-elsewhere"},
        [("SMOVE", "x:set:1:open", "t:x:set:1:failed", "a")],
        {"added": 2, "open": 2},
    ),
    "a set is never reviewed": (
        {"not-reviewed"},
        [("ZREM", "x:agenda", note("review set", "1"))],
        {"added": 2, "open": 2},
    ),
}


@pytest.mark.parametrize(("expected", "commands", "then"), WOUNDS.values(), ids=WOUNDS)
async def test_damage_is_reported_and_repaired(
    story: Story, expected: set[str], commands: Commands, then: dict[str, object]
) -> None:
    await story.completed("done")
    await add(story, 3, "a", "b")
    for command, key, *more in commands:
        given = [story.key(each[2:]) if str(each).startswith("t:") else each for each in more]
        await story.change(command, key, *given)
    async with story.unchanged():
        assert problems(await findings(story)) >= expected
    await findings(story, resolve="resolve")
    assert await findings(story) == []
    found = await status(story)
    assert {name: found.get(name) for name in then} == then


async def test_members_of_a_set_that_is_gone_are_members_of_none(story: Story) -> None:
    await add(story, 1, "a", row={"constraints": '{"limits":[{"key":"k","limit":1}]}'})
    await add(story, 2, "b")
    await story.change("DEL", "x:set:1")
    assert problems(await findings(story)) == {"set-gone", "members-without-set"}
    await findings(story, resolve="resolve")
    assert await findings(story) == []
    assert (await story.job("a"))["x-constraints"] == '{"limits":[{"key":"k","limit":1}]}'
    assert "x-constraints" not in await story.job("b")
    assert not await story.exists("x:set:1:open")
    assert await story.pop(3, count=2) == ["a", "b"]


async def test_failed_member_may_outlive_its_set(story: Story) -> None:
    await add(story, 1, "a")
    await story.pop(2)
    await story.fail("a", 3)
    await story.change("DEL", "x:set:1")
    await story.change("DEL", "x:set:1:failed")
    assert await findings(story) == []


async def test_set_whose_members_are_gone_ends(story: Story) -> None:
    await add(story, 1, "a", **CALLBACKS)
    await close(story, 2)
    await story.change("DEL", "j:a")
    await story.change("DEL", "j:a-history")
    await story.change("DEL", "q:mail-work")
    assert problems(await findings(story)) == {"member-elsewhere"}
    await findings(story, resolve="resolve")
    assert await findings(story) == []
    assert await status(story) == {"added": 1, "canceled": 1, "ended_jid": "i-ended-1"}
