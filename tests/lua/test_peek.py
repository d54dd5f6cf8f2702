"""peek: the jobs that a pop would return next."""

from tests.lua.story import Story


async def test_offset_skips_jobs_with_expired_locks(story: Story) -> None:
    await story.running("lapsed")
    await story.put("a", 2)
    await story.put("b", 3)
    assert await story.peek(61, count=2) == ["lapsed", "a"]
    assert await story.peek(61, count=2, offset=1) == ["a", "b"]
    assert await story.peek(61, count=2, offset=2) == ["b"]
    assert await story.peek(61, count=2, offset=3) == []


async def test_waiting_jid_without_a_job_is_not_returned(story: Story) -> None:
    await story.put("a", 1)
    await story.change("ZADD", "q:mail-work", 5, "ghost")
    assert await story.peek(2) == ["a"]
