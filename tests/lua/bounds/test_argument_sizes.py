"""Arguments that are too large for one call are refused."""

from collections.abc import Callable
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, WrongState
from tests.lua.bounds.many_jobs import MOST, Gauge, new_job
from tests.lua.story import Story


def _batch(size: int, **each: Any) -> dict[str, Any]:
    return {"now": 1, "batch": [{"jid": f"j{number}", **each} for number in range(size)]}


MAIL = {"queue": "mail"}
LISTS: dict[str, tuple[tuple[str, ...], Callable[[int], dict[str, Any]]]] = {
    "put_many": (("put_many",),
        lambda size: {"queue": "mail", **_batch(size, klass="K", data="{}")}),
    "complete_many": (("complete_many",),
        lambda size: {"worker": "ann", **_batch(size, queue="mail")}),
    "heartbeat_many": (("heartbeat_many",), lambda size: {"worker": "ann", **_batch(size)}),
    "pop_many": (("pop_many",), lambda size: {"worker": "ann", "count": 1, "now": 1,
        "order": "ordered", "batch": [MAIL] * size}),
    "cancel": (("cancel",), lambda size: {"jids": [f"j{number}" for number in range(size)]}),
    "multiget": (("multiget",), lambda size: {"jids": [f"j{number}" for number in range(size)]}),
    "timeout": (("timeout",), lambda size: {"now": 1, "jids": ["running"] * size}),
    "deregister": (("deregister",),
        lambda size: {"workers": [f"w{number}" for number in range(size)]}),
    "pause": (("pause",), lambda size: {"queues": [f"q{number}" for number in range(size)]}),
    "unpause": (("unpause",), lambda size: {"queues": [f"q{number}" for number in range(size)]}),
    "forget": (("forget",), lambda size: {"queues": [f"q{number}" for number in range(size)]}),
    "depends on": (("depends", "on"),
        lambda size: {"jid": "held", "now": 1, "jids": [f"j{number}" for number in range(size)]}),
    "depends off": (("depends", "off"),
        lambda size: {"jid": "held", "now": 1, "jids": [f"j{number}" for number in range(size)]}),
    "tag add": (("tag", "add"),
        lambda size: {"jid": "held", "now": 1, "tags": [f"t{number}" for number in range(size)]}),
    "tag remove": (("tag", "remove"),
        lambda size: {"jid": "held", "now": 1, "tags": [f"t{number}" for number in range(size)]}),
    "track": (("track", "track"),
        lambda size: {"jid": "held", "now": 1, "tags": [f"t{number}" for number in range(size)]}),
    "recur tag": (("recur", "tag"),
        lambda size: {"jid": "hourly", "tags": [f"t{number}" for number in range(size)]}),
    "recur update": (("recur", "update"),
        lambda size: {"jid": "hourly",
            "pairs": ["priority", 1] * (size // 2) + ["klass"] * (size % 2)}),
    "declare off": (("declare", "off"),
        lambda size: {"jids": [f"j{number}" for number in range(size)]}),
    "tick": (("tick",), lambda size: {"now": 1, **_batch(size, tick=1, at=1, next=2)}),
    "put's tags": (("put",), lambda size: new_job(tags=[f"t{number}" for number in range(size)])),
    "put's depends": (("put",),
        lambda size: new_job(depends=[f"j{number}" for number in range(size)])),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
async def test_list_of_more_than_a_thousand_items_is_refused(
    story: Story, gauge: Gauge, name: str
) -> None:
    await story.running("running")
    await story.put("free", 1)
    await story.put("held", 1, depends=["free"])
    await story.recur("hourly", 1)
    words, arguments = LISTS[name]
    for size in (MOST + 1, 5_000):
        async with story.refused(InvalidArgument):
            await gauge(*words, **arguments(size))
        assert gauge.most <= 20
    if name == "timeout":
        async with story.refused(WrongState, jid="free"):
            await gauge("timeout", now=1, jids=["running"] * (MOST - 1) + ["free"])
    else:
        await gauge(*words, **arguments(MOST))


async def test_job_has_at_most_a_thousand_tags(story: Story, gauge: Gauge) -> None:
    await story.put("a", 0)
    await story.recur("hourly", 0)
    tags = [f"t{number}" for number in range(MOST)]
    for words, given in (
        (("tag", "add"), {"jid": "a", "now": 1}),
        (("recur", "tag"), {"jid": "hourly"}),
    ):
        assert await gauge(*words, **given, tags=tags) == tags
        assert await gauge(*words, **given, tags=tags) == tags
        async with story.refused(InvalidArgument, argument="tags"):
            await gauge(*words, **given, tags=["another"])
    async with story.refused(InvalidArgument, argument="tags"):
        await gauge("track", "track", jid="a", now=1, tags=["another"])
    assert gauge.most <= 2_100


async def test_total_size_of_all_lists_of_a_batch_is_limited(story: Story, gauge: Gauge) -> None:
    tags = [f"t{number}" for number in range(500)]
    jobs = [
        {"jid": f"j{number}", "klass": "K", "data": "{}", "tags": tags} for number in range(100)
    ]
    answers = await gauge("put_many", queue="mail", now=1, batch=jobs)
    assert answers[:20] == [f"j{number}" for number in range(20)]
    assert all(isinstance(answer, InvalidArgument) for answer in answers[20:])
    assert gauge.most <= 21_000
    assert await gauge("put_many", queue="mail", now=1, batch=jobs[20:40]) == [
        f"j{number}" for number in range(20, 40)
    ]
