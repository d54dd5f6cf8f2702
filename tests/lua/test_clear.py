"""clear: deletes the jobs of a queue, in batches."""

from typing import Any

from tests.lua.story import Story
from tests.lua.test_concurrency_and_rate_limits import ONE


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
