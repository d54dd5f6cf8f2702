"""depends: adds or removes dependencies."""

from typing import Any

import pytest

from tests.lua.story import Story, score


async def _on(story: Story, jid: str, *jids: str) -> Any:
    return await story.store.depends_on(jid=jid, jids=jids, now=10)


async def _off(story: Story, jid: str, *jids: str) -> Any:
    return await story.store.depends_off(jid=jid, jids=jids, now=10)


@pytest.fixture
async def held(story: Story) -> Story:
    """Put `b`, which depends on `a`, and `c`."""
    await story.put("a", 0)
    await story.put("c", 0)
    await story.put("b", 1, depends=["a"])
    return story


async def test_dependencies_can_be_added(held: Story) -> None:
    assert await _on(held, "b", "c") == 1
    assert await held.members("j:b-dependencies") == {"a", "c"}
    assert await held.members("j:c-dependents") == {"b"}
    assert await held.pop(2, count=9) == ["c", "a"]
    await held.complete("a", 3)
    assert await held.state("b") == "depends"
    await held.complete("c", 4)
    assert await held.state("b") == "waiting"


async def test_job_whose_last_dependency_is_removed_can_run(held: Story) -> None:
    await _off(held, "b", "a")
    assert (await held.where("b"), await held.state("b")) == ({"work": score(0, 10)}, "waiting")


async def test_all_dependencies_can_be_removed_at_once(held: Story) -> None:
    await _on(held, "b", "c")
    assert await _off(held, "b", "all") == 1
    assert (await held.where("b"), await held.state("b")) == ({"work": score(0, 10)}, "waiting")
    assert [key for key in await held.all_keys() if "depend" in key] == []


@pytest.mark.parametrize("off", ["a", "all"])
async def test_delay_applies_after_the_last_dependency_was_removed(story: Story, off: str) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"], delay=100)
    await _off(story, "b", off)
    assert (await story.where("b"), await story.state("b")) == ({"scheduled": 101}, "scheduled")
    assert "scheduled" not in await story.job("b")


@pytest.mark.parametrize("delay", [5, 9])
async def test_past_delay_has_no_effect_and_is_deleted(story: Story, delay: float) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"], delay=delay)
    await _off(story, "b", "a")
    assert await story.where("b") == {"work": score(0, 10)}
    assert "scheduled" not in await story.job("b")
