"""tag: adds, removes and finds tags."""

from tests.lua.story import Story


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
