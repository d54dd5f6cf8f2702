"""peek: the jobs that a pop would return next."""

from tests.lua.story import Story


async def test_peek_returns_jobs_in_the_order_of_pop_without_changes(story: Story) -> None:
    for jid, priority in (("b", 0), ("c", 1), ("a", -1)):
        await story.put(jid, 0, priority=priority)
    async with story.unchanged():
        assert await story.peek(1) == ["a", "b", "c"]
        assert await story.peek(1, count=2) == ["a", "b"]
        assert await story.peek(1, count=0) == []
    assert await story.pop(1, count=3) == ["a", "b", "c"]


async def test_offset_skips_jobs_with_expired_locks(story: Story) -> None:
    await story.running("lapsed")
    await story.put("a", 2)
    await story.put("b", 3)
    assert await story.peek(61, count=2) == ["lapsed", "a"]
    assert await story.peek(61, count=2, offset=1) == ["a", "b"]
    assert await story.peek(61, count=2, offset=2) == ["b"]
    assert await story.peek(61, count=2, offset=3) == []


async def test_peek_ignores_pauses_and_limits(story: Story) -> None:
    await story.configure(mail_max_concurrency=1)
    await story.running("a")
    await story.put("b", 2)
    await story.store.pause(queues=["mail"])
    assert await story.peek(3) == ["b"]


async def test_waiting_jid_without_a_job_is_not_returned(story: Story) -> None:
    await story.put("a", 1)
    await story.change("ZADD", "q:mail-work", 5, "ghost")
    assert await story.peek(2) == ["a"]
