"""unfail: retries failed jobs of a group in a given queue."""

from typing import Any

from tests.lua.story import Story, score


async def _unfail(
    story: Story, at: float, *, queue: str = "mail", group: str = "typo", **more: Any
) -> int:
    moved: int = await story.store.unfail(queue=queue, group=group, now=at, **more)
    return moved


async def test_unfail_moves_25_jobs_by_default(story: Story) -> None:
    for n in range(26):
        await story.failed(f"j{n}", n, n, n)
    assert await _unfail(story, 100) == 25
    assert await _unfail(story, 100) == 1


async def test_jid_of_a_missing_or_moved_job_is_removed_from_the_group(story: Story) -> None:
    await story.put("waiting", 0)
    await story.failed("a", 1, 2, 3, queue="post")
    await story.change("RPUSH", "f:typo", "ghost", "waiting")
    assert await _unfail(story, 5) == 1
    assert await story.scores("q:mail-work") == {"waiting": score(0, 0), "a": score(0, 5)}
    assert (await story.items("f:typo"), await story.exists("j:ghost")) == ([], False)
