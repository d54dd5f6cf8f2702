"""order and answer: commands to running workers, and their replies."""

import pytest

from aioqless.errors import InvalidArgument, NoSuchWorker
from tests.lua.story import Story


async def test_order_is_published_to_its_worker_only(story: Story) -> None:
    async with story.published() as messages:
        assert (
            await story.store.remote_control_subscribe(
                worker="ann", channel="x", queue="mail", limit=4
            )
            == 1
        )
        assert await story.store.remote_control_pause(worker="ann", channel="y") == 1
    assert messages == [
        (
            "w:ann",
            {
                "event": "remote_control",
                "command": "subscribe",
                "answer": "x",
                "queue": "mail",
                "limit": 4,
            },
        ),
        ("w:ann", {"event": "remote_control", "command": "pause", "answer": "y"}),
    ]


async def test_order_to_an_unknown_worker_is_refused(story: Story) -> None:
    async with story.refused(NoSuchWorker, worker="nobody"):
        await story.store.remote_control_pause(worker="nobody", channel="x")


async def test_repeated_order_is_published_once(story: Story) -> None:
    async with story.published() as messages:
        for _ in range(2):
            assert (
                await story.store.remote_control_pause(worker="ann", channel="x", request="c1:1")
                == 1
            )
    assert len(messages) == 1


async def test_answer_is_published_to_the_caller(story: Story) -> None:
    async with story.published() as messages:
        await story.store.remote_reply(channel="x", reply='{"paused": true}')
    assert messages == [("x:reply:x", {"paused": True})]


@pytest.mark.parametrize("reply", ["", "1", "{"])
async def test_answer_must_be_an_object(story: Story, reply: str) -> None:
    async with story.refused(InvalidArgument, argument="reply"):
        await story.store.remote_reply(channel="x", reply=reply)
