"""What other qless clients may change is reviewed: a missing or late note is found and repaired."""

from __future__ import annotations

import json

import pytest

from tests.lua.check.all_states import findings, note
from tests.lua.story import Story
from tests.lua.test_job_sets import add

BRANCH = json.dumps({"queue": "money", "klass": "Refund", "data": "{}"})
SUBJECTS = [("steps", "a"), ("failures", ""), ("set", "1")]


async def make(story: Story, kind: str) -> None:
    """Make a subject of reviews."""
    if kind == "set":
        await add(story, 1, "b")
    elif kind == "failures":
        await story.put("a", 0, on_failure=BRANCH)
    else:
        await story.running("a")
        held = {"jid": "a", "worker": "ann", "now": 2}
        await story.call("step", kind="step", name="plan", result="1", **held)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("kind", "about"), SUBJECTS)
async def test_subject_without_a_review_is_found_and_reviewed_at_once(
    story: Story, kind: str, about: str, late: bool
) -> None:
    await make(story, kind)
    assert await findings(story) == []
    if late:  # it was scheduled while the clock was a day ahead
        await story.change("ZADD", "x:agenda", 86_400, note(f"review {kind}", about))
    else:
        await story.change("DEL", "x:agenda")
    expected = {"problem": "not-reviewed", "kind": f"review {kind}", "about": about}
    async with story.unchanged():
        assert await findings(story) == [{**expected, "fixed": False}]
    assert await findings(story, resolve="resolve") == [{**expected, "fixed": True}]
    assert await story.reviewed(kind, about) == 10
    assert await findings(story) == []


@pytest.mark.parametrize(("kind", "about"), SUBJECTS)
async def test_review_schedules_the_next_one(story: Story, kind: str, about: str) -> None:
    await make(story, kind)
    first = await story.reviewed(kind, about)
    assert first is not None and first <= 22
    assert await story.tick(first - 0.1) and await story.reviewed(kind, about) == first
    await story.tick(first)
    assert await story.reviewed(kind, about) == pytest.approx(first + 20, abs=0.1)


@pytest.mark.parametrize(("kind", "about"), SUBJECTS)
async def test_put_and_completion_leave_reviews_to_others(
    story: Story, kind: str, about: str
) -> None:
    await make(story, kind)
    due = await story.reviewed(kind, about)
    await story.running("c", 100, 101, queue="post", worker="bob")
    await story.complete("c", 102, worker="bob", queue="post")
    await story.cancel("c")
    assert await story.reviewed(kind, about) == due
