"""unfail: retries failed jobs of a group in a given queue."""

from typing import Any

from tests.lua.story import Story, score


async def _unfail(
    story: Story, at: float, *, queue: str = "mail", group: str = "typo", **more: Any
) -> int:
    moved: int = await story.store.unfail(queue=queue, group=group, now=at, **more)
    return moved


async def test_jobs_of_a_group_wait_again_in_the_given_queue(story: Story) -> None:
    await story.failed("a", retries=3, priority=-2)
    assert await _unfail(story, 5.5, queue="post") == 1
    stored = await story.job("a")
    assert (stored["state"], stored["worker"], stored["expires"], stored["queue"]) == (
        "waiting",
        "",
        "0",
        "post",
    )
    assert (stored["remaining"], stored["time"]) == ("3", "5.500000")
    assert await story.where("a", "post") == {"work": score(2, 5.5)}
    assert (await story.items("j:a-history"))[3:] == ['[5,"put",{"q":"post"},0.500000]']
    assert (await story.items("f:typo"), await story.members("failures")) == ([], set())


async def test_oldest_failures_go_first_up_to_the_count(story: Story) -> None:
    for at, jid in enumerate("cab"):
        await story.failed(jid, at, at, at)
    assert await _unfail(story, 9, count=2) == 2
    assert (await story.items("f:typo"), await story.members("failures")) == (["b"], {"typo"})
    assert await story.pop(10, worker="bob", count=9) == ["c", "a"]


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
