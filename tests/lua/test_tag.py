"""tag: adds, removes and finds tags."""

from tests.lua.story import Story


async def _add(story: Story, jid: str, at: float, *tags: str) -> list[str]:
    has: list[str] = await story.store.tag_add(jid=jid, now=at, tags=tags)
    return has


async def _remove(story: Story, jid: str, *tags: str) -> list[str]:
    has: list[str] = await story.store.tag_remove(jid=jid, now=9, tags=tags)
    return has


async def test_added_tags_are_appended_and_all_are_returned(story: Story) -> None:
    await story.put("a", 0, tags=["x"])
    assert await _add(story, "a", 5, "z", "y") == ["x", "z", "y"]
    assert (await story.job("a"))["tags"] == '["x","z","y"]'
    assert (await story.scores("t:z"), await story.scores("t:y")) == ({"a": 5}, {"a": 5})
    assert await story.scores("tags") == {"x": 1, "y": 1, "z": 1}


async def test_removing_tags_returns_the_rest(story: Story) -> None:
    await story.put("a", 0, tags=["x", "y", "z"])
    assert await _remove(story, "a", "y", "x") == ["z"]
    assert (await story.job("a"))["tags"] == '["z"]'
    assert (await story.scores("t:x"), await story.scores("t:y"), await story.scores("t:z")) == (
        {},
        {},
        {"a": 0},
    )
    assert await story.scores("tags") == {"z": 1}


async def test_jobs_of_a_tag_are_paged_with_their_total(story: Story) -> None:
    for n in range(30):
        await story.put(f"j{n:02}", n, tags=["x"])
    first = await story.store.tag_get(tag="x")
    assert (first["total"], first["jobs"]) == (30, [f"j{n:02}" for n in range(25)])
    assert await story.store.tag_get(tag="x", offset=28) == {
        "total": 30,
        "jobs": ["j28", "j29"],
    }
    assert await story.store.tag_get(tag="x", offset=2, count=2) == {
        "total": 30,
        "jobs": ["j02", "j03"],
    }
    assert await story.store.tag_get(tag="x", offset=0, count=0) == {
        "total": 30,
        "jobs": [],
    }


async def test_top_tags_have_at_least_two_jobs_most_frequent_first(story: Story) -> None:
    for jid, tags in (("a", ["one", "two", "three"]), ("b", ["two", "three"]), ("c", ["three"])):
        await story.put(jid, 0, tags=tags)
    assert await story.store.tag_top() == ["three", "two"]
    assert await story.store.tag_top(offset=1) == ["two"]
    assert await story.store.tag_top(offset=0, count=1) == ["three"]
    assert await story.store.tag_top(offset=0, count=0) == []
