"""Script calls as specified: keys, argument order, and raw replies."""

import json

import pytest
from redis.exceptions import ResponseError

from tests.lua.story import Story


async def test_specified_calls_put_pop_and_complete(story: Story) -> None:
    call = story.by_hand
    assert (
        await call(
            "put",
            ["mail"],
            "a",
            "Greet",
            '{"n":1}',
            0,
            0,
            "priority",
            -1,
            "tags",
            '["x"]',
            "retries",
            3,
        )
        == b"a"
    )
    assert await call("put", ["mail"], "b", "Greet", "{}", 0, 0, "depends", '["a"]') == b"b"
    assert await call("put", ["mail"], "c", "Greet", "{}", 0, 10) == b"c"
    assert [job["jid"] for job in json.loads(await call("peek", ["mail"], 5, 1))] == ["a"]
    (job,) = json.loads(await call("pop", ["mail"], "ann", 5, 1))
    assert (job["jid"], job["state"], job["priority"], job["tags"], job["retries"]) == (
        "a",
        "running",
        -1,
        ["x"],
        3,
    )
    assert await call("heartbeat", [], "a", "ann", 2) == b"62"
    assert await call("heartbeat", [], "a", "ann", 2.5, "[2]") == b"62.5"
    assert await call("retry", [], "a", "mail", "ann", 3) == b"2"
    json.loads(await call("pop", ["mail"], "ann", 1, 4))
    assert await call("retry", [], "a", "mail", "ann", 5, 1) == b"1"
    json.loads(await call("pop", ["mail"], "ann", 1, 6))
    assert (
        await call("complete", [], "a", "ann", "mail", 7, "[3]", "next", "post", "delay", 1)
        == b"scheduled"
    )
    json.loads(await call("pop", ["post"], "ann", 1, 8))
    assert (
        await call("complete", [], "a", "ann", "post", 9, "[4]", "next", "post", "depends", '["c"]')
        == b"depends"
    )
    assert await call("depends", [], "a", "on", "b") == b"1"
    assert await call("depends", [], "a", "off", "b") == b"1"
    assert await call("depends", [], "a", "off", "all") == b"1"
    json.loads(await call("pop", ["post"], "ann", 1, 10))
    assert await call("complete", [], "a", "ann", "post", 11, "[5]") == b"complete"
    job = json.loads(await call("get", [], "a"))
    assert (job["state"], job["data"]) == ("complete", "[5]")


async def test_specified_calls_fail_and_cancel(story: Story) -> None:
    call = story.by_hand
    for jid in ("a", "b"):
        await call("put", ["mail"], jid, "Greet", "{}", 0, 0)
    json.loads(await call("pop", ["mail"], "ann", 5, 1))
    assert await call("fail", [], "a", "ann", "typo", "no such word", 2) == b"a"
    assert await call("fail", [], "b", "ann", "typo", "no such word", 2, "[1]") == b"b"
    assert await call("failed", []) == b'{"typo":2}'
    assert json.loads(await call("failed", [], "typo", 0, 1))["total"] == 2
    assert await call("cancel", [], "a") == [b"a"]
    assert await call("get", [], "a") is None
    assert json.loads(await call("failed", [], "typo", 1))["jobs"] == []


async def test_specified_calls_read(story: Story) -> None:
    call = story.by_hand
    await call("put", ["mail"], "a", "Greet", "{}", 0, 0)
    await call("put", ["mail"], "later", "Greet", "{}", 0, 100)
    await call("put", ["mail"], "held", "Greet", "{}", 0, 0, "depends", '["a"]')
    json.loads(await call("pop", ["mail"], "ann", 1, 1))
    assert await call("jobs", [], "running", 2, "mail") == [b"a"]
    assert await call("jobs", [], "stalled", 61, "mail") == [b"a"]
    assert await call("jobs", [], "scheduled", 2, "mail") == [b"later"]
    assert await call("jobs", [], "depends", 2, "mail") == [b"held"]
    counts = {
        "name": "mail",
        "waiting": 0,
        "running": 1,
        "stalled": 0,
        "scheduled": 1,
        "depends": 1,
        "recurring": 0,
        "paused": False,
    }
    assert json.loads(await call("queues", [], 2)) == [counts]
    assert json.loads(await call("queues", [], 2, "mail")) == counts
    (worker,) = json.loads(await call("workers", [], 2))
    assert worker.items() >= {"name": "ann", "jobs": 1, "stalled": 0}.items()
    assert json.loads(await call("workers", [], 2, "ann")) == {"jobs": ["a"], "stalled": []}
    assert json.loads(await call("stats", [], "mail", 0))["wait"]["total"] == 1
    assert await call("length", ["mail"]) == b"2"


async def test_specified_calls_tag_and_track(story: Story) -> None:
    call = story.by_hand
    await call("put", ["mail"], "a", "Greet", "{}", 0, 0)
    assert await call("priority", [], "a", -5) == b"-5"
    assert await call("tag", [], "add", "a", 1, "x", "y") == [b"x", b"y"]
    assert await call("tag", [], "remove", "a", 2, "y") == [b"x"]
    assert await call("tag", [], "get", "x") == b'{"total":1,"jobs":["a"]}'
    assert await call("tag", [], "get", "x", 0, 5) == b'{"total":1,"jobs":["a"]}'
    assert await call("track", [], "track", "a", 3, "z") == b"1"
    assert [job["jid"] for job in json.loads(await call("track", []))["jobs"]] == ["a"]
    assert await call("track", [], "untrack", "a", 4) == b"1"


async def test_specified_calls_configure(story: Story) -> None:
    call = story.by_hand
    assert await call("config", [], "get", "heartbeat") == b"60"
    assert await call("config", [], "set", "heartbeat", 30) is None
    assert await call("config", [], "get", "heartbeat") == b'"30"'
    assert json.loads(await call("config", [], "get"))["heartbeat"] == "30"
    assert await call("config", [], "set", "heartbeat") is None
    assert await call("config", [], "get", "heartbeat") == b"60"
    assert await call("config", [], "get", "colour") is None


async def test_specified_calls_recur(story: Story) -> None:
    call = story.by_hand
    assert (
        await call(
            "recur",
            [],
            "on",
            "mail",
            "r",
            "Greet",
            "{}",
            0,
            "interval",
            60,
            5,
            "backlog",
            2,
            "tags",
            '["x"]',
        )
        == b"r"
    )
    assert json.loads(await call("recur", [], "get", "r"))["next"] == 5
    assert await call("recur", [], "update", "r", "interval", 70, "priority", -1) == b"1"
    assert await call("recur", [], "tag", "r", "y") == [b"x", b"y"]
    assert await call("recur", [], "untag", "r", "x") == [b"y"]
    assert await call("recur", [], "off", "r") == b"1"
    with pytest.raises(ResponseError, match="BADARG"):
        await call("recur", [], "on", "mail", "r", "Greet", "{}", 0, "cron", 60, 5)


async def test_option_given_twice_counts_as_given_last(story: Story) -> None:
    await story.by_hand(
        "put", ["mail"], "a", "Greet", "{}", 0, 0, "priority", 1, "retries", 1, "priority", 2
    )
    assert ((await story.get("a"))["priority"], (await story.get("a"))["retries"]) == (2, 1)


async def test_refusal_is_an_error_code_with_json_details(
    story: Story,
) -> None:
    with pytest.raises(ResponseError) as caught:
        await story.by_hand("complete", [], "a", "ann", "mail", 1, "")
    code, detail = str(caught.value).split(" ", 1)
    assert code == "NOJOB"
    assert json.JSONDecoder().raw_decode(detail)[0] == {"jid": "a", "why": "there is no such job"}


async def test_queue_key_may_be_its_name_or_its_full_key(story: Story) -> None:
    await story.by_hand("put", ["mail"], "a", "Greet", "{}", 0, 0)
    await story.by_hand("pause", ["mail", story.key("q:post")])
    assert await story.members("paused_queues") == {"mail", "post"}
    assert await story.by_hand("length", [story.key("q:mail")]) == b"1"
    await story.by_hand("unpause", [story.key("q:mail"), "post"])
    assert await story.members("paused_queues") == set()


async def test_routing_key_for_a_cluster_is_ignored(story: Story) -> None:
    await story.put("a", 0)
    assert json.loads(await story.by_hand("get", [story.namespace], "a"))["jid"] == "a"
