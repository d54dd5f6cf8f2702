"""A check proceeds in small steps, within one namespace."""

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from aioqless.store import PutManyRow, ScriptStore
from tests.lua.check.all_states import findings, problems, put_all_states
from tests.lua.story import Story


async def test_empty_namespace_is_consistent(story: Story) -> None:
    reply = await story.store.check(now=1, budget=10_000)
    assert (reply["cursor"], reply["found"], reply["fixed"]) == ("0", [], 0)


@pytest.mark.parametrize("budget", [1, 7, 10_000])
async def test_small_steps_find_the_same_problems_as_large_ones(story: Story, budget: int) -> None:
    await put_all_states(story)
    for jid in ("waiting", "scheduled", "held", "failed"):
        await story.change("HDEL", f"j:{jid}", "remaining")
    for number in range(300):
        await story.change("ZADD", "q:mail-work", 0, f"ghost-{number}")
        await story.change("LPUSH", "f:typo", f"ghost-{number}")
    found = await findings(story, budget=budget)
    assert {finding["jid"] for finding in found if finding["problem"] == "fields"} == {
        "waiting",
        "scheduled",
        "held",
        "failed",
    }
    for problem in ("entry-without-job", "not-failed-in-group"):
        assert len({finding["jid"] for finding in found if finding["problem"] == problem}) == 300


async def test_step_reads_little_more_than_its_budget(story: Story) -> None:
    for number in range(3):
        batch: list[PutManyRow] = [
            {"jid": f"{number}-{each}", "klass": "Greet", "data": "{}", "tags": ["x"]}
            for each in range(1000)
        ]
        await story.store.put_many(queue="mail", now=1, batch=batch)
    cursor, steps = "", []
    while cursor != "0":
        reply = await story.store.check(now=2, cursor=cursor)
        cursor = reply["cursor"]
        steps.append(reply["examined"])
        assert reply["found"] == []
    assert max(steps) < 400
    assert sum(steps) > 3 * 3000


async def test_resolving_in_small_steps_fixes_a_long_list_entirely(story: Story) -> None:
    await story.failed("a")
    for number in range(250):
        await story.change("LPUSH" if number % 2 else "RPUSH", "f:typo", f"ghost-{number}")
    await findings(story, resolve="resolve", budget=20)
    assert await story.items("f:typo") == ["a"]


async def test_job_in_a_long_group_is_found_by_its_failure_time(story: Story) -> None:
    common: dict[Any, Any] = {
        "klass": "K",
        "data": "{}",
        "queue": "mail",
        "state": "failed",
        "worker": "",
        "tags": "[]",
        "expires": "",
    }
    numbers: dict[Any, Any] = {"priority": 0, "retries": 1, "remaining": 1}
    pipe = story.redis.pipeline(transaction=False)
    for number in range(3000):
        jid, when = f"j{number}", number // 7
        failure = json.dumps({"group": "typo", "message": "", "when": when, "worker": ""})
        pipe.hset(
            story.key(f"j:{jid}"),
            mapping={"jid": jid, "time": when, "failure": failure, **common, **numbers},
        )
        pipe.lpush(story.key("f:typo"), jid)
    pipe.sadd(story.key("failures"), "typo")
    pipe.zadd(story.key("queues"), {"mail": 0})
    await pipe.execute()
    await story.change("LREM", "f:typo", 0, "j1234")
    assert [(found["problem"], found["jid"]) for found in await findings(story, budget=10_000)] == [
        ("not-in-group", "j1234")
    ]


@pytest.mark.parametrize(
    "cursor",
    [
        "x", "-1", "{}", "[]", "\x00", '["0"]', '["x",[]]', "[1,[]]", '["1",[1]]',
        '["99999999999999999999",[]]',
        '["end",[["elsewhere","0"]]]', '["1",[["{key}","x"]]]', '["1",[["{key}"]]]',
    ],
)  # fmt: skip
async def test_invented_cursor_is_refused(story: Story, cursor: str) -> None:
    await story.put("a", 0)
    async with story.refused(InvalidArgument, argument="cursor"):
        await story.store.check(now=1, cursor=cursor.replace("{key}", story.key("j:a")))


async def test_nothing_is_fixed_without_resolve(story: Story) -> None:
    async with story.refused(InvalidArgument, argument="resolve"):
        await story.store.check(now=1, resolve="yes")


@pytest.mark.parametrize("name", ["a*b", "a?b", "[ab]", "a\\b", "a-b", "{a}", "a%b"])
async def test_check_reads_its_own_namespace_only(story: Story, name: str) -> None:
    connection = story.store.connection
    other, mine = (
        Story(ScriptStore(connection, story.namespace + each), story.redis)
        for each in ("a+b", name)
    )
    for each in (other, mine):
        await each.put("a", 0)
        await each.change("ZREM", "q:mail-work", "a")
    assert problems(await findings(mine, resolve="resolve")) == {"nowhere"}
    assert problems(await findings(other)) == {"nowhere"}
