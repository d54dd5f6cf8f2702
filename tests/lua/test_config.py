"""config: options shared by all clients of the namespace."""

import pytest

from aioqless.errors import InvalidArgument
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
    "archive": "off",
    "archive-length": 1000000,
    "archive-when-full": "hold",
    "archive-data": 0,
}


async def test_all_options_have_a_default(story: Story) -> None:
    assert await story.store.config_get() == _DEFAULTS


@pytest.mark.parametrize(("option", "value"), _DEFAULTS.items())
async def test_each_default_can_be_asked_for(story: Story, option: str, value: int | str) -> None:
    assert await story.store.config_get(option=option) == value


async def test_an_option_that_was_set_is_a_text_in_redis_and_in_the_answer(story: Story) -> None:
    await story.store.config_set(option="heartbeat", value=30)
    assert await story.fields("config") == {"heartbeat": "30"}
    assert await story.store.config_get(option="heartbeat") == "30"
    assert await story.store.config_get() == {**_DEFAULTS, "heartbeat": "30"}


async def test_options_nobody_knows_can_be_kept_too(story: Story) -> None:
    assert await story.store.config_get(option="colour") is None
    await story.store.config_set(option="colour", value="red")
    assert await story.store.config_get(option="colour") == "red"
    assert (await story.store.config_get())["colour"] == "red"


async def test_an_unset_option_is_its_default_again(story: Story) -> None:
    await story.configure(heartbeat=30)
    await story.store.config_unset(option="heartbeat")
    assert (
        await story.fields("config"),
        await story.store.config_get(option="heartbeat"),
    ) == ({}, 60)


async def test_an_option_that_is_set_to_nothing_is_unset(story: Story) -> None:
    await story.configure(heartbeat=30)
    await story.store.config_set(option="heartbeat")
    assert await story.fields("config") == {}


async def test_both_spellings_of_a_queues_heartbeat_are_written_as_live_clients_do(
    story: Story,
) -> None:
    await story.store.config_set(option="heartbeat-mail", value=20)
    assert await story.fields("config") == {"mail-heartbeat": "20"}
    assert await story.store.config_get(option="heartbeat-mail") == "20"
    assert await story.store.config_get(option="mail-heartbeat") == "20"
    await story.store.config_unset(option="heartbeat-mail")
    assert await story.fields("config") == {}


async def test_the_other_spelling_written_by_somebody_else_can_be_read_and_unset(
    story: Story,
) -> None:
    await story.change("HSET", "config", "heartbeat-mail", "20")
    assert await story.store.config_get(option="heartbeat-mail") == "20"
    await story.store.config_unset(option="heartbeat-mail")
    assert await story.fields("config") == {}


@pytest.mark.parametrize(
    "option",
    [
        "heartbeat",
        "mail-heartbeat",
        "heartbeat-mail",
        "mail-max-concurrency",
        "grace-period",
        "jobs-history",
    ],
)
async def test_an_option_that_is_read_as_a_number_must_be_one(story: Story, option: str) -> None:
    async with story.refused(InvalidArgument, argument=option):
        await story.store.config_set(option=option, value="soon")


async def test_what_somebody_else_set_to_no_number_counts_as_not_set(story: Story) -> None:
    await story.change("HSET", "config", "heartbeat", "soon", "grace-period", "later")
    await story.running("a")
    assert (await story.get("a"))["expires"] == 61
    await story.pop(61)
    assert await story.where("a") == {"locks": 71}
