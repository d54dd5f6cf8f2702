"""get and multiget: read jobs."""

import pytest

from tests.lua.story import Story


async def test_empty_lists_are_lists_on_the_wire(story: Story) -> None:
    await story.put("a", 0)
    reply: bytes = await story.by_hand("get", [], "a")
    for name in (b"tags", b"dependencies", b"dependents"):
        assert b'"' + name + b'":[]' in reply
    assert b'"failure":{}' in reply
    assert await story.by_hand("multiget", [], "b") == b"[]"
    assert await story.by_hand("peek", ["post"], 5, 1) == b"[]"
    assert await story.by_hand("pop", ["post"], "ann", 5, 1) == b"[]"
    assert await story.by_hand("track", []) == b'{"jobs":[],"expired":[]}'
    assert await story.by_hand("workers", [], 100000) == b"[]"
    assert await story.by_hand("workers", [], 1, "ann") == b'{"jobs":[],"stalled":[]}'
    assert await story.by_hand("failed", [], "typo") == b'{"total":0,"jobs":[]}'
    assert await story.by_hand("tag", [], "get", "x") == b'{"total":0,"jobs":[]}'
    assert await story.by_hand("tag", [], "top") == b"[]"
    await story.store.forget(queues=["mail"])
    assert await story.by_hand("queues", [], 1) == b"[]"


async def test_numbers_keep_all_their_digits(story: Story) -> None:
    await story.put("a", 0, priority=0.1)
    await story.pop(1353000060.123456)
    job = await story.get("a")
    assert (job["priority"], job["expires"]) == (0.1, 1353000120.123456)


async def test_malformed_event_does_not_hide_the_job(story: Story) -> None:
    await story.put("a", 0)
    await story.change("RPUSH", "j:a-history", "nonsense")
    assert (await story.get("a"))["history"] == [
        {"when": 0, "what": "put", "q": "mail"},
        {"when": 0, "what": "unreadable"},
    ]


@pytest.mark.parametrize(("stored", "shown"), [("2.7", 2), ("-1", -1), ("3", 3)])
async def test_remaining_retries_are_never_negative(story: Story, stored: str, shown: int) -> None:
    await story.put("a", 0)
    await story.change("HSET", "j:a", "remaining", stored)
    assert (await story.get("a"))["remaining"] == shown
