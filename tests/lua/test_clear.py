"""clear: deletes the jobs of a queue, in batches."""

from typing import Any

import pytest

from aioqless.store import PutManyRow
from tests.lua.story import Story
from tests.lua.test_concurrency_and_rate_limits import ONE

ALL = ["waiting", "scheduled", "depends", "failed"]


async def clear(
    story: Story, state: str, *states: str, at: float = 10, **more: Any
) -> tuple[int, dict[str, str]]:
    """Call clear until it is done.

    Returns how many were canceled, and which were kept because of which.
    """
    offset: int | None = 0
    canceled, kept = 0, {}  # type: ignore[var-annotated]
    while offset is not None:
        given = {"queue": "mail", "state": state, "states": states or [state], **more}
        reply = await story.store.clear(offset=offset, now=at, **given)
        canceled, offset = canceled + reply["canceled"], reply["offset"]
        kept |= dict(reply["kept"])
    return canceled, kept


async def test_jobs_of_the_state_are_canceled_without_a_trace_and_others_stay(story: Story) -> None:
    await story.running("running")
    await story.put("other queue", 2, queue="post")
    before = await story.all_keys()
    await story.put("a", 2, tags=["x"])
    await story.put("b", 2, tags=["x"])
    await story.put("later", 2, delay=100)
    assert await clear(story, "waiting") == (2, {})
    assert await story.counts(10) == {"running": 1, "scheduled": 1}
    assert await clear(story, "scheduled") == (1, {})
    assert await story.all_keys() == before


async def test_job_is_cleared_with_all_dependents_in_any_order(
    story: Story,
) -> None:
    for number in (3, 1, 0, 2):
        await story.put(f"c{number}", 5)
    for number, other in ((2, 3), (0, 1), (1, 2)):
        await story.store.put(
            queue="mail",
            jid=f"c{number}",
            klass="K",
            data="{}",
            now=6,
            delay=0,
            depends=[f"c{other}"],
        )
    assert await clear(story, "depends", "depends", "waiting") == (3, {})
    assert await clear(story, "waiting") == (1, {})
    assert [
        key for key in await story.all_keys() if key.startswith(("j:", "q:", "x:noted-jids"))
    ] == []


@pytest.mark.parametrize("dry_run", [None, 1])
async def test_job_with_a_dependent_in_another_queue_is_kept(
    story: Story, dry_run: int | None
) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    await story.put("outside", 2, depends=["b"], queue="post")
    await story.put("c", 3, depends=["a"])
    await story.put("free", 4)
    found = [
        await clear(story, state, "waiting", "depends", dry_run=dry_run)
        for state in ("depends", "waiting")
    ]
    assert found == [(1, {"b": "outside"}), (1, {"a": "outside"})]
    left = {"a", "b", "outside"} | ({"c", "free"} if dry_run else set())
    assert {jid for jid in ("a", "b", "c", "outside", "free") if await story.get(jid)} == left


async def test_job_with_a_dependent_that_is_not_cleared_is_kept(
    story: Story,
) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    assert await clear(story, "waiting") == (0, {"a": "b"})
    assert await clear(story, "waiting", "waiting", "depends") == (2, {})


async def test_jobs_with_circular_dependencies_are_cleared_together(story: Story) -> None:
    await story.put("x", 0)
    await story.put("a", 0, depends=["x"])
    await story.put("b", 0, depends=["a"])
    await story.store.depends_on(jid="a", jids=["b"], now=1)
    assert await clear(story, "depends") == (2, {})


async def test_failed_jobs_are_cleared_by_queue_within_their_group(
    story: Story,
) -> None:
    for number in range(3):
        await story.failed(f"m{number}")
        await story.failed(f"p{number}", queue="post")
    assert await clear(story, "failed", group="typo", dry_run=1) == (3, {})
    assert await clear(story, "failed", group="typo") == (3, {})
    assert await story.items("f:typo") == ["p2", "p1", "p0"]
    assert await story.day() == {"failures": "3", "failed": "0"}


async def test_jobs_delayed_by_a_limit_are_cleared_as_scheduled(story: Story) -> None:
    for number in range(8):
        await story.put(f"j{number}", number, **ONE)
    (running,) = await story.pop(9, count=20)
    assert await story.counts(10) == {"running": 1, "scheduled": 7}
    canceled, _ = await clear(story, "scheduled")
    left = await story.counts(10)
    assert left.get("waiting", 0) <= 1 and canceled == 7 - left.get("waiting", 0), (
        "the key's next may have gone to its place in line"
    )
    await clear(story, "waiting")
    assert await story.counts(10) == {"running": 1}
    await story.complete(running, 11)
    assert not [key for key in await story.all_keys() if key.startswith("x:held-back")]


async def test_many_jobs_are_cleared_in_batches(story: Story) -> None:
    batch: list[PutManyRow] = [
        {"jid": f"j{number}", "klass": "K", "data": "1"} for number in range(600)
    ]
    await story.store.put_many(queue="mail", now=0, batch=batch)
    reply = await story.store.clear(
        queue="mail", state="waiting", offset=0, now=1, states=["waiting"]
    )
    assert reply == {"canceled": 250, "kept": [], "offset": 0}
    assert await clear(story, "waiting", dry_run=1) == (350, {})
    assert await clear(story, "waiting") == (350, {})
