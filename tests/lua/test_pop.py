"""pop: entries and options that other clients leave."""

from tests.lua.story import Story


async def test_waiting_jid_without_a_job_is_removed(story: Story) -> None:
    await story.put("a", 1)
    await story.change("ZADD", "q:mail-work", 5, "ghost")
    assert await story.pop(2, count=2) == ["a"]
    assert await story.scores("q:mail-work") == {}


async def test_qless_spelling_of_a_queue_heartbeat_takes_precedence(
    story: Story,
) -> None:
    await story.change(
        "HSET", "config", "heartbeat-mail", "20", "mail-heartbeat", "10", "heartbeat", "30"
    )
    await story.running("a")
    assert (await story.get("a"))["expires"] == 11


async def test_specified_spelling_of_a_queue_heartbeat_is_read(story: Story) -> None:
    await story.change("HSET", "config", "heartbeat-mail", "20", "heartbeat", "30")
    await story.running("a")
    assert (await story.get("a"))["expires"] == 21


async def test_scheduled_jid_without_a_job_is_removed(story: Story) -> None:
    await story.change("ZADD", "q:mail-scheduled", 1, "ghost")
    await story.put("a", 0)
    assert await story.pop(2, count=2) == ["a"]
    assert await story.scores("q:mail-scheduled") == {}
