"""cancel: deletes jobs in any state."""

import pytest

from aioqless.errors import HasDependents
from tests.lua.story import Story


@pytest.mark.parametrize(
    "state", ["waiting", "scheduled", "depends", "running", "stalled", "failed"]
)
async def test_canceled_job_is_deleted_without_a_trace(story: Story, state: str) -> None:
    if state == "depends":
        await story.put("b", 0, queue="post")
    match state:
        case "waiting":
            await story.put("a", 0, tags=["x"])
        case "scheduled":
            await story.put("a", 0, tags=["x"], delay=10)
        case "depends":
            await story.put("a", 0, tags=["x"], depends=["b"], delay=10)
        case "failed":
            await story.failed("a", tags=["x"])
        case _:
            await story.running("a", tags=["x"])
    if state == "stalled":
        await story.timeout("a", at=2)
    assert await story.state("a") == state
    assert await story.cancel("a") == ["a"]
    assert await story.get("a") is None
    left = await story.all_keys()
    of_the_other = {"j:b", "j:b-history", "q:post-work"}
    assert set(left) - of_the_other <= {
        "queues",
        "workers",
        "x:fence",
        "s:stats:0:mail",
        "s:wait:0:mail",
        "x:agenda",
        "x:old-statistics",
    }


async def test_unknown_and_complete_jobs_are_skipped(story: Story) -> None:
    await story.completed("done")
    await story.put("a", 3)
    assert await story.cancel("unknown", "done", "a") == ["a"]
    assert await story.state("done") == "complete"
    async with story.unchanged():
        assert await story.cancel("unknown", "done") == []


async def test_job_with_dependents_is_canceled_only_together_with_them(
    story: Story,
) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    await story.put("c", 2, depends=["b"])
    async with story.refused(HasDependents, jid="a", dependent="b"):
        await story.cancel("a")
    async with story.refused(HasDependents, jid="b", dependent="c"):
        await story.cancel("a", "b")
    assert await story.cancel("a", "b", "c") == ["a", "b", "c"]
    assert [key for key in await story.all_keys() if key.startswith(("j:", "q:"))] == []


async def test_canceled_dependent_is_unlinked_from_its_dependency(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    await story.put("c", 1, depends=["a"])
    await story.cancel("b")
    assert (await story.members("j:a-dependents"), (await story.get("a"))["dependents"]) == (
        {"c"},
        ["c"],
    )


async def test_many_jobs_are_canceled_in_one_call(story: Story) -> None:
    jids = [f"j{n}" for n in range(300)]
    await story.store.put_many(
        queue="mail",
        now=0,
        batch=[{"jid": jid, "klass": "K", "data": "1", "tags": '["x"]'} for jid in jids],
    )
    assert await story.cancel(*jids) == jids
    assert await story.scores("tags") == {}
    assert [key for key in await story.all_keys() if key.startswith(("j:", "q:", "t:"))] == []


async def test_very_many_dependencies_of_a_canceled_job_are_unlinked_by_later_calls(
    story: Story,
) -> None:
    others = [f"o{n:03}" for n in range(300)]
    await story.store.put_many(
        queue="post",
        now=0,
        batch=[{"jid": jid, "klass": "K", "data": "1"} for jid in others],
    )
    await story.put("a", 1, depends=others)
    await story.cancel("a")
    for at in (2, 3):
        await story.pop(at, queue="other")
    assert [
        key for key in await story.all_keys() if "depend" in key or key.startswith("x:noted-jids")
    ] == []
    assert await story.noted() == []
