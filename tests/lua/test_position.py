"""position: the place of a waiting job in its queue."""

from tests.lua.story import Story


async def position(story: Story, jid: str, now: float) -> tuple[int, int] | None:
    found = await story.store.position(jid=jid, now=now)
    return None if found is None else (found["ahead"], found["popped"])


async def test_position_is_the_number_of_waiting_jobs_ahead(story: Story) -> None:
    for jid, priority in (("b", 0), ("c", 1), ("a", -1)):
        await story.put(jid, 0, priority=priority)
    async with story.unchanged():
        assert [await position(story, jid, 1) for jid in "abc"] == [(0, 0), (1, 0), (2, 0)]
    assert await story.pop(2) == ["a"]
    assert [await position(story, jid, 3) for jid in "abc"] == [None, (0, 1), (1, 1)]


async def test_due_jobs_wait_behind_the_others(story: Story) -> None:
    await story.put("late", 0, delay=5)
    await story.put("later", 0, delay=9)
    await story.put("a", 1)
    assert await position(story, "late", 4) is None
    assert [await position(story, jid, 9) for jid in ("a", "late", "later")] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]


async def test_job_that_does_not_wait_has_no_position(story: Story) -> None:
    await story.put("first", 0)
    await story.put("second", 0, depends=["first"])
    assert [await position(story, jid, 1) for jid in ("second", "gone", "first-dependents")] == [
        None
    ] * 3
