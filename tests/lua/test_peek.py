"""peek: what a pop would hand out next."""

from tests.lua.story import Story, score


async def test_a_peek_shows_jobs_in_the_order_of_a_pop_and_changes_none(story: Story) -> None:
    for jid, priority in (("b", 0), ("c", 1), ("a", -1)):
        await story.put(jid, 0, priority=priority)
    async with story.unchanged():
        assert await story.peek(1) == ["a", "b", "c"]
        assert await story.peek(1, count=2) == ["a", "b"]
        assert await story.peek(1, count=0) == []
    assert await story.pop(1, count=3) == ["a", "b", "c"]


async def test_a_peek_answers_whole_jobs(story: Story) -> None:
    await story.put("a", 0, data="[1]")
    assert await story.store.peek(queue="mail", count=1, now=1) == [await story.get("a")]


async def test_an_offset_skips_lapsed_jobs_too(story: Story) -> None:
    await story.running("lapsed")
    await story.put("a", 2)
    await story.put("b", 3)
    assert await story.peek(61, count=2) == ["lapsed", "a"]
    assert await story.peek(61, count=2, offset=1) == ["a", "b"]
    assert await story.peek(61, count=2, offset=2) == ["b"]
    assert await story.peek(61, count=2, offset=3) == []


async def test_lapsed_jobs_are_shown_first_and_are_still_their_holders(story: Story) -> None:
    await story.running("lapsed")
    await story.put("a", 2, priority=-9)
    async with story.unchanged():
        jobs = await story.store.peek(queue="mail", count=9, now=61)
    assert [(job["jid"], job["state"], job["worker"]) for job in jobs] == [
        ("lapsed", "running", "ann"),
        ("a", "waiting", ""),
    ]


async def test_a_peek_moves_due_jobs_to_work(story: Story) -> None:
    await story.put("a", 0, delay=5)
    assert await story.peek(4) == []
    assert await story.peek(7) == ["a"]
    assert (await story.where("a"), await story.state("a")) == ({"work": score(0, 7)}, "waiting")


async def test_a_peek_makes_recurring_instances_that_are_due(story: Story) -> None:
    await story.recur("r", 0, interval=60)
    assert await story.peek(0) == ["r-1"]


async def test_pausing_and_limits_do_not_blind_a_peek(story: Story) -> None:
    await story.configure(mail_max_concurrency=1)
    await story.running("a")
    await story.put("b", 2)
    await story.store.pause(queues=["mail"])
    assert await story.peek(3) == ["b"]


async def test_a_waiting_jid_without_a_hash_is_not_shown(story: Story) -> None:
    await story.put("a", 1)
    await story.change("ZADD", "q:mail-work", 5, "ghost")
    assert await story.peek(2) == ["a"]
