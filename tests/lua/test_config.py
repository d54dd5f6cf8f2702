"""config: options shared by all clients of the namespace."""

from tests.lua.story import Story

_DEFAULTS = {
    "application": "qless",
    "heartbeat": 60,
    "grace-period": 10,
    "stats-history": 30,
    "histogram-history": 7,
    "jobs-history-count": 50000,
    "jobs-history": 604800,
    "max-worker-age": 86400,
    "max-job-history": 100,
    "max-lost": 0,
    "worker-timeout": 15,
    "max-steps": 1000,
    "max-steps-size": 16777216,
    "archive": "off",
    "archive-length": 1000000,
    "archive-when-full": "hold",
    "archive-data": 0,
}


async def test_all_options_have_a_default(story: Story) -> None:
    assert await story.store.config_get() == _DEFAULTS


async def test_other_spelling_of_a_queue_heartbeat_can_be_read_and_unset(
    story: Story,
) -> None:
    await story.change("HSET", "config", "heartbeat-mail", "20")
    assert await story.store.config_get(option="heartbeat-mail") == "20"
    await story.store.config_unset(option="heartbeat-mail")
    assert await story.fields("config") == {}


async def test_non_numeric_value_of_another_client_counts_as_unset(story: Story) -> None:
    await story.change("HSET", "config", "heartbeat", "soon", "grace-period", "later")
    await story.running("a")
    assert (await story.get("a"))["expires"] == 61
    await story.pop(61)
    assert await story.where("a") == {"locks": 71}
