"""recur: templates that other clients have left incomplete."""

from tests.lua.story import Story


async def test_template_of_another_client_without_backlog_makes_up_for_all(story: Story) -> None:
    await story.recur("r", 0, interval=10)
    await story.change("HDEL", "r:r", "x-coalesce")
    assert len(await story.peek(45)) == 5


async def test_template_without_a_hash_makes_nothing(story: Story) -> None:
    await story.change("ZADD", "q:mail-recur", 1, "ghost")
    await story.put("a", 1)
    assert await story.pop(2, count=2) == ["a"]
