"""peek: the jobs that a pop would return next."""

from tests.lua.story import Story, score


async def test_peek_returns_jobs_in_the_order_of_pop_without_changes(story: Story) -> None:
    for jid, priority in (("b", 0), ("c", 1), ("a", -1)):
        await story.put(jid, 0, priority=priority)
    async with story.unchanged():
        assert await story.peek(1) == ["a", "b", "c"]
        assert await story.peek(1, count=2) == ["a", "b"]
        assert await story.peek(1, count=0) == []
    assert await story.pop(1, count=3) == ["a", "b", "c"]


async def test_peek_returns_complete_jobs(story: Story) -> None:
    await story.put("a", 0, data="[1]")
    assert await story.store.peek(queue="mail", count=1, now=1) == [await story.get("a")]


async def test_offset_skips_jobs_with_expired_locks(story: Story) -> None:
    await story.running("lapsed")
    await story.put("a", 2)
    await story.put("b", 3)
    assert await story.peek(61, count=2) == ["lapsed", "a"]
    assert await story.peek(61, count=2, offset=1) == ["a", "b"]
    assert await story.peek(61, count=2, offset=2) == ["b"]
    assert await story.peek(61, count=2, offset=3) == []


async def test_jobs_with_expired_locks_come_first_and_keep_their_holders(story: Story) -> None:
    await story.running("lapsed")
    await story.put("a", 2, priority=-9)
    async with story.unchanged():
        jobs = await story.store.peek(queue="mail", count=9, now=61)
    assert [(job["jid"], job["state"], job["worker"]) for job in jobs] == [
        ("lapsed", "running", "ann"),
        ("a", "waiting", ""),
    ]


async def test_peek_moves_due_jobs_to_work(story: Story) -> None:
    await story.put("a", 0, delay=5)
    assert await story.peek(4) == []
    assert await story.peek(7) == ["a"]
    assert (await story.where("a"), await story.state("a")) == ({"work": score(0, 7)}, "waiting")


async def test_peek_makes_recurring_instances_that_are_due(story: Story) -> None:
    await story.recur("r", 0, interval=60)
    assert await story.peek(0) == ["r-1"]


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
