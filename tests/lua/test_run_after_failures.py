"""A job with the policy `run` runs when each of its dependencies has ended or can't complete."""

from __future__ import annotations

import pytest

from aioqless.errors import NoSuchJob
from tests.lua.story import Story


async def put_all(story: Story, **depends: str) -> None:
    """Put jobs in their order; those whose name begins with `run` have the policy."""
    for at, (jid, others) in enumerate(depends.items()):
        policy = "run" if jid.startswith("run") else None
        await story.put(jid, at, depends=others.split(), if_dependency_fails=policy)


async def end(story: Story, jid: str, at: float, *, fails: bool = False) -> None:
    assert jid in await story.pop(at, count=9, worker="ann")
    await (story.fail(jid, at) if fails else story.complete(jid, at))


async def test_it_runs_if_the_dependency_had_failed_before_it_was_put(story: Story) -> None:
    await put_all(story, a="", b="a")
    await end(story, "a", 10, fails=True)
    await put_all(story, run="b")
    assert await story.state("run") == "waiting"


async def test_dependency_that_is_added_later_counts(story: Story) -> None:
    await put_all(story, a="", b="a", c="", run="b")
    await story.store.depends_on(jid="b", jids=["c"], now=5)
    await end(story, "c", 10, fails=True)
    assert await story.state("run") == "waiting"


async def test_dependency_that_is_removed_from_a_held_job_counts_no_more(story: Story) -> None:
    await put_all(story, a="", b="a", c="", run="b c")
    await story.pop(10, count=2)
    await story.fail("a", 11)
    await story.store.depends_off(jid="b", jids=["a"], now=12)
    await story.complete("c", 13)
    assert await story.state("run") == "depends"
    await end(story, "b", 14)
    assert await story.state("run") == "waiting"


async def test_removing_the_last_open_dependency_lets_it_run(story: Story) -> None:
    await put_all(story, a="", b="", run="a b")
    await story.pop(10, count=2)
    await story.fail("a", 11)
    await story.store.depends_off(jid="run", jids=["b"], now=12)
    assert await story.state("run") == "waiting"


async def test_many_jobs_between_are_followed_in_portions(story: Story) -> None:
    await put_all(story, a="")
    for number in range(600):
        await story.put(f"j{number}", 1, depends=["a" if number == 0 else f"j{number - 1}"])
    await story.put("run", 2, depends=["j599"], if_dependency_fails="run")
    await end(story, "a", 10, fails=True)
    for _ in range(12):
        await story.tick(11)
    assert await story.state("run") == "waiting"
    assert not await story.noted()


async def test_deleted_job_leaves_no_trace(story: Story) -> None:
    await put_all(story, a="", b="", run="a b")
    await story.pop(10, count=2)
    await story.fail("a", 11)
    await story.cancel("a", "b", "run")
    await story.tick(12)
    assert [key for key in await story.all_keys() if "stuck" in key or "noted" in key] == []


@pytest.mark.parametrize("missing", [None, "done"])
async def test_unknown_dependency_counts_as_done(story: Story, missing: str | None) -> None:
    await story.put("a", 0, depends=["typo"], missing=missing)
    assert await story.state("a") == "waiting"


async def test_unknown_dependency_can_be_refused(story: Story) -> None:
    given = {"klass": "K", "data": "1", "missing": "refuse"}
    async with story.refused(NoSuchJob, jid="typo"):
        await story.put("a", 0, depends=["typo"], missing="refuse")
    async with story.refused(NoSuchJob, jid="typo"):
        batch = [{"queue": "q", "jid": "a", "depends": ["typo"], **given}]
        await story.store.put_flow(now=0, batch=batch)  # type: ignore[arg-type]
    await story.put("other", 0)
    await story.put("held", 0, depends=["other"])
    async with story.refused(NoSuchJob, jid="typo"):
        await story.store.depends_on(jid="held", jids=["typo"], missing="refuse", now=1)


async def test_earlier_jobs_of_a_workflow_are_known(story: Story) -> None:
    given = {"queue": "q", "klass": "K", "data": "1", "missing": "refuse"}
    batch = [{"jid": "a", **given}, {"jid": "b", "depends": ["a"], **given}]
    assert await story.store.put_flow(now=0, batch=batch) == ["a", "b"]  # type: ignore[arg-type]


async def test_workflow_is_put_once(story: Story) -> None:
    once = {"queue": "q", "klass": "K", "data": "1", "constraints": '{"if_exists": "keep"}'}
    batch = [{"jid": "a", **once}, {"jid": "b", "depends": ["a"], **once}]
    assert await story.store.put_flow(now=0, batch=batch) == ["a", "b"]  # type: ignore[arg-type]
    async with story.unchanged():
        assert await story.store.put_flow(now=1, batch=batch) == ["", "a"]  # type: ignore[arg-type]


async def test_workflow_with_a_taken_unique_key_is_not_put(story: Story) -> None:
    alone = '{"unique": "order-7", "until": "done"}'
    await story.put("other", 0, constraints=alone)
    given = {"queue": "q", "klass": "K", "data": "1"}
    batch = [{"jid": "a", **given}, {"jid": "b", "constraints": alone, **given}]
    async with story.unchanged():
        found = await story.store.put_flow(now=1, batch=batch)  # type: ignore[arg-type]
    assert found == ["", "other"]
