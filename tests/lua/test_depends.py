"""depends: adds or removes dependencies."""

from typing import Any

import pytest

from aioqless.errors import InvalidArgument, NoSuchJob, WrongState
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


async def test_unknown_and_complete_jobs_add_nothing(held: Story) -> None:
    await held.completed("done", queue="post")
    async with held.unchanged():
        assert await _on(held, "b", "done", "unknown") == 1


async def test_job_cannot_depend_on_itself(held: Story) -> None:
    async with held.refused(InvalidArgument, argument="depends"):
        await _on(held, "b", "c", "b")


async def test_one_of_several_dependencies_can_be_removed(held: Story) -> None:
    await _on(held, "b", "c")
    assert await _off(held, "b", "a") == 1
    assert (await held.members("j:b-dependencies"), await held.members("j:a-dependents")) == (
        {"c"},
        set(),
    )
    assert await held.state("b") == "depends"


async def test_job_whose_last_dependency_is_removed_can_run(held: Story) -> None:
    await _off(held, "b", "a")
    assert (await held.where("b"), await held.state("b")) == ({"work": score(0, 10)}, "waiting")


async def test_all_dependencies_can_be_removed_at_once(held: Story) -> None:
    await _on(held, "b", "c")
    assert await _off(held, "b", "all") == 1
    assert (await held.where("b"), await held.state("b")) == ({"work": score(0, 10)}, "waiting")
    assert [key for key in await held.all_keys() if "depend" in key] == []


async def test_removed_dependency_has_no_effect_when_it_completes(held: Story) -> None:
    await _on(held, "b", "c")
    await _off(held, "b", "a")
    await held.pop(11, count=2)
    await held.complete("a", 12)
    assert await held.state("b") == "depends"


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


@pytest.mark.parametrize("word", ["on", "off"])
async def test_job_without_dependencies_is_refused(story: Story, word: str) -> None:
    await story.put("a", 0)
    await story.put("b", 0)
    async with story.refused(WrongState, jid="b", state="waiting"):
        await story.call("depends", word, jid="b", jids=["a"], now=1)


async def test_job_that_does_not_exist_is_refused(story: Story) -> None:
    async with story.refused(NoSuchJob, jid="b"):
        await _on(story, "b", "a")


async def test_removing_an_unknown_dependency_changes_nothing(held: Story) -> None:
    async with held.unchanged():
        assert await _off(held, "b", "c", "unknown") == 1
