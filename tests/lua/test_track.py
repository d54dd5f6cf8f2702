"""track: tracked jobs."""

from tests.lua.story import Story


async def test_tracked_jobs_are_returned_completely_in_order_of_tracking(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 0)
    await story.track("b", 3)
    await story.track("a", 5)
    assert await story.store.track_list() == {
        "jobs": [await story.get("b"), await story.get("a")],
        "expired": [],
    }


async def test_tags_given_with_the_tracking_are_added(story: Story) -> None:
    await story.put("a", 0, tags=["x"])
    await story.track("a", 3, "x", "y")
    assert (await story.job("a"))["tags"] == '["x","y"]'
    assert (await story.scores("t:x"), await story.scores("t:y"), await story.scores("tags")) == (
        {"a": 0},
        {"a": 3},
        {"x": 1, "y": 1},
    )


async def test_deleted_tracked_jobs_are_listed_by_jid_and_can_be_untracked(
    story: Story,
) -> None:
    await story.configure(jobs_history=-1)
    await story.put("a", 0)
    await story.track("a", 0)
    await story.pop(1)
    await story.complete("a", 2)
    assert await story.store.track_list() == {"jobs": [], "expired": ["a"]}
    assert await story.store.track_untrack(jid="a", now=4) == 1
    assert await story.store.track_list() == {"jobs": [], "expired": []}
