"""Data of former versions and of other qless clients is read and processed."""

import json
from typing import Any

import pytest

from aioqless.client.job.decoding import decode_row
from aioqless.errors import HasDependents
from tests.lua.check.all_states import findings
from tests.lua.story import Story, score

STAGES = json.dumps(
    [
        {"q": "first", "put": 100.7, "popped": 110, "worker": "eve", "done": 120},
        {"q": "mail", "put": 120, "popped": 130, "worker": "ann", "failed": 140},
        {"q": "mail", "put": 150},
    ]
)
EVENTS = [
    '[100,"put",{"q":"first"},0.700000]', '[110,"popped",{"worker":"eve"}]', '[120,"done"]',
    '[120,"put",{"q":"mail"}]',
    '[130,"popped",{"worker":"ann"}]', '[140,"failed"]', '[150,"put",{"q":"mail"}]',
]  # fmt: skip


async def _stored(story: Story, jid: str = "a", at: float = 5, **fields: Any) -> None:
    """Write a waiting job into Redis. A field that is None is missing."""
    whole: dict[str, Any] = {
        "jid": jid, "klass": "Greet", "data": "{}", "priority": "0", "tags": "[]",
        "state": "waiting", "worker": "", "expires": "0",
        "queue": "mail", "retries": "5", "remaining": "5", "time": f"{at:.20f}", **fields,
    }  # fmt: skip
    given = [part for name, value in whole.items() if value is not None for part in (name, value)]
    await story.change("HSET", f"j:{jid}", *given)
    await story.change("ZADD", "q:mail-work", score(0, at), jid)
    await story.change("ZADD", "queues", at, "mail")


# The history of 2012, a list of stages within the hash


async def test_old_history_is_returned_as_events_and_unchanged(story: Story) -> None:
    await _stored(story, history=STAGES)
    async with story.unchanged():
        job = await story.get("a")
    assert [(event["when"], event["what"]) for event in job["history"]] == [
        (100.7, "put"), (110, "popped"), (120, "done"), (120, "put"), (130, "popped"),
        (140, "failed"), (150, "put"),
    ]  # fmt: skip
    assert (job["history"][0]["q"], job["history"][1]["worker"], job["history_total"]) == (
        "first",
        "eve",
        7,
    )


async def test_first_new_event_converts_an_old_history(story: Story) -> None:
    await _stored(story, history=STAGES)
    assert await story.pop(160) == ["a"]
    assert await story.items("j:a-history") == [*EVENTS, '[160,"popped",{"worker":"ann"}]']
    assert (await story.job("a"))["history"] == "[]"


@pytest.mark.parametrize("step", ["log", "put", "cancel"])
async def test_every_command_accepts_a_job_with_an_old_history(story: Story, step: str) -> None:
    await _stored(story, history=STAGES)
    if step == "log":
        await story.store.log(jid="a", message="note", now=160)
        assert await story.items("j:a-history") == [*EVENTS, '[160,"note"]']
    elif step == "put":
        await story.put("a", 160)
        assert await story.items("j:a-history") == [*EVENTS, '[160,"put",{"q":"mail"}]']
    else:
        assert await story.cancel("a") == ["a"]
        assert not await story.exists("j:a-history")


async def test_converted_history_is_truncated(story: Story) -> None:
    await story.configure(max_job_history=3)
    await _stored(story, history=STAGES)
    await story.pop(160)
    assert await story.items("j:a-history") == [
        EVENTS[0],
        EVENTS[-1],
        '[160,"popped",{"worker":"ann"}]',
    ]


@pytest.mark.parametrize("history", ["[]", "{}", "nonsense"])
async def test_malformed_old_history_counts_as_empty(story: Story, history: str) -> None:
    await _stored(story, history=history)
    assert (await story.get("a"))["history"] == []
    await story.pop(160)
    assert await story.items("j:a-history") == ['[160,"popped",{"worker":"ann"}]']


# Jobs with any malformed fields can run


_SHAPES: dict[str, dict[str, Any]] = {
    "with an old history": {"history": STAGES},
    "with an empty object for its tags": {"tags": "{}"},
    "without tags": {"tags": None},
    "without a time": {"time": None},
    "without priority, retries and what remains of them": {
        "priority": None,
        "retries": None,
        "remaining": None,
    },
    "without a worker and an expiry": {"worker": None, "expires": None},
    "with an empty expiry": {"expires": ""},
    "with a former failure of one type": {
        "failure": '{"type":"typo","message":"no","when":1.5,"worker":"eve"}'
    },
    "with no failure": {"failure": "{}"},
    "with a failure that nobody can read": {"failure": "nonsense"},
    "with tags that nobody can read": {"tags": "{x"},
    "with a flag of a courtesy": {"grace": "1"},
    "with a delay that is over": {"scheduled": "3"},
    "of a worker that retried it": {"worker": "eve", "expires": "61"},
    "spawned by a template": {"spawned_from_jid": "r"},
    "stalled": {"state": "stalled"},
}


@pytest.mark.parametrize("fields", _SHAPES.values(), ids=_SHAPES)
async def test_job_of_another_client_runs_through_all_its_queues(
    story: Story, fields: dict[str, Any]
) -> None:
    await _stored(story, **fields)
    shown = await story.get("a")
    assert (shown["tags"], shown["expires"] in (0, 61), shown["retries"], shown["remaining"]) == (
        [],
        True,
        5,
        5,
    )
    assert await story.store.tag_add(jid="a", now=200, tags=["x"]) == ["x"]
    assert await story.pop(201) == ["a"]
    assert await story.heartbeat("a", 202) == 262
    assert await story.complete("a", 203, next="post") == "waiting"
    assert await story.pop(204, queue="post") == ["a"]
    assert await story.fail("a", 205) == "a"
    assert await story.store.unfail(queue="mail", group="typo", now=206) == 1
    assert await story.pop(207) == ["a"]
    assert await story.retry("a", 208) == 4
    assert await story.pop(209) == ["a"]
    assert await story.complete("a", 210) == "complete"
    left = {"grace", "scheduled"} & set(await story.job("a"))
    assert (left, await story.scores("w:ann:jobs"), await story.scores("t:x")) == (
        set(),
        {},
        {"a": 200},
    )


@pytest.mark.parametrize("fields", _SHAPES.values(), ids=_SHAPES)
async def test_job_of_another_client_can_be_moved_and_canceled(
    story: Story, fields: dict[str, Any]
) -> None:
    await _stored(story, **fields)
    await story.put("a", 200, queue="post", delay=5)
    assert (await story.where("a"), await story.where("a", "post")) == ({}, {"scheduled": 205})
    assert await story.cancel("a") == ["a"]
    assert [key for key in await story.all_keys() if key.startswith(("j:", "q:"))] == []


async def test_job_with_only_jid_state_and_queue_is_returned(story: Story) -> None:
    await story.change("HSET", "j:a", "jid", "a", "state", "waiting", "queue", "mail")
    job = await story.get("a")
    assert (job["klass"], job["worker"], job["priority"], job["retries"], job["remaining"]) == (
        "",
        "",
        0,
        5,
        5,
    )
    assert (job["data"], job["tags"], job["failure"], job["history"], job["expires"]) == (
        "null",
        [],
        {},
        [],
        0,
    )


async def test_invalid_utf8_is_kept(story: Story) -> None:
    await _stored(story, data=b'"\xff"', klass=b"Gr\xfc\xdfe")
    job = await story.get("a")
    assert job["data"].encode("utf-8", "surrogateescape") == b'"\xff"'
    await story.pop(10)
    await story.complete("a", 11)
    assert await story.ask("HGET", story.key("j:a"), "data") == b'"\xff"'


# Failures


async def _failed(story: Story, failure: str) -> None:
    await _stored(story, state="failed", expires="", failure=failure)
    await story.change("ZREM", "q:mail-work", "a")
    await story.change("LPUSH", "f:typo", "a")
    await story.change("SADD", "failures", "typo")
    await story.change("HSET", "s:stats:0:mail", "failed", 1, "failures", 1)


_OLD_FAILURE = '{"type":"typo","message":"no","when":7.5,"worker":"eve"}'


async def test_failure_with_a_type_is_read_as_a_group(story: Story) -> None:
    await _failed(story, _OLD_FAILURE)
    assert (await story.get("a"))["failure"] == {
        "group": "typo",
        "message": "no",
        "when": 7.5,
        "worker": "eve",
    }
    (job,) = (await story.store.failed(group="typo"))["jobs"]
    assert (job["group"], job["message"]) == ("typo", "no")


@pytest.mark.parametrize("step", ["put", "cancel", "unfail"])
async def test_job_that_failed_with_a_type_can_leave_its_group(story: Story, step: str) -> None:
    await _failed(story, _OLD_FAILURE)
    if step == "put":
        await story.put("a", 10)
    elif step == "cancel":
        await story.cancel("a")
    else:
        assert await story.store.unfail(queue="mail", group="typo", now=10) == 1
    assert (await story.items("f:typo"), await story.members("failures")) == ([], set())
    assert (await story.day())["failed"] == "0"


async def test_uncounted_failure_is_not_subtracted(story: Story) -> None:
    await _failed(story, _OLD_FAILURE)
    await story.change("HSET", "s:stats:0:mail", "failed", 0)
    await story.put("a", 10)
    assert (await story.day())["failed"] == "0"


async def test_failure_of_an_exhausted_job_of_another_client_is_read(story: Story) -> None:
    message = 'Job exhausted retries in queue "mail"'
    await _failed(
        story,
        json.dumps({"group": "typo", "message": message, "when": 1353000060.1235, "worker": ""}),
    )
    assert (await story.get("a"))["failure"] == {
        "group": "typo",
        "message": message,
        "when": 1353000060.1235,
        "worker": "",
    }


# Keys that live qless clients leave


async def test_job_retried_into_another_queue_by_another_client_runs_and_leaves_no_lock(
    story: Story,
) -> None:
    await _stored(story)
    await story.change("RENAME", "q:mail-work", story.key("q:post-work"))
    assert await story.pop(10, queue="post") == ["a"]
    assert await story.complete("a", 11, queue="mail") == "complete"
    assert await story.pop(100, queue="post") == []
    assert (await story.scores("q:post-locks"), await story.state("a")) == ({}, "complete")


async def test_job_that_depends_on_itself_can_be_freed_or_canceled(
    story: Story,
) -> None:
    for jid in ("a", "b"):
        await _stored(story, jid, state="depends")
        await story.change("ZREM", "q:mail-work", jid)
        await story.change("ZADD", "q:mail-depends", 5, jid)
        await story.change("SADD", f"j:{jid}-dependencies", jid)
        await story.change("SADD", f"j:{jid}-dependents", jid)
    await story.store.depends_off(jid="a", jids=["a"], now=10)
    assert await story.pop(11) == ["a"]
    assert await story.cancel("b") == ["b"]


async def test_missing_dependent_does_not_prevent_cancellation(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 1, depends=["a"])
    async with story.refused(HasDependents):
        await story.cancel("a")
    await story.change("DEL", "j:b")
    assert await story.cancel("a") == ["a"]
    assert not await story.exists("j:a-dependents")


async def test_wrong_tag_counters_are_not_returned(story: Story) -> None:
    await story.change("ZADD", "tags", -3, "x", 0, "y", 1, "z", 2, "w")
    assert await story.store.tag_top() == ["w"]


async def test_template_of_another_client_makes_instances(story: Story) -> None:
    fields = {"jid": "r", "klass": "Greet", "data": "{}", "priority": "3", "tags": "{}",
        "state": "recur", "queue": "mail",
              "type": "interval", "interval": "60", "retries": "0", "backlog": "0",
              "count": "7"}  # fmt: skip
    await story.change("HSET", "r:r", *[part for pair in fields.items() for part in pair])
    await story.change("ZADD", "q:mail-recur", 10, "r")
    template = await story.store.recur_get(jid="r")
    assert (template["tags"], template["priority"], template["count"], template["coalesce"]) == (
        [],
        -3,
        7,
        False,
    )
    assert await story.pop(70, count=9) == ["r-8", "r-9"]
    job = await story.job("r-8")
    assert (job["tags"], job["retries"], job["remaining"], job["priority"]) == ("[]", "0", "0", "3")


async def test_uncounted_template_of_another_client_starts_with_1(story: Story) -> None:
    await story.recur("r", 0)
    await story.change("HDEL", "r:r", "count", "backlog", "x-coalesce")
    assert await story.pop(0) == ["r-1"]


@pytest.mark.parametrize("interval", ["0", "-60", "soon"])
async def test_template_with_an_invalid_interval_makes_nothing_and_blocks_no_other(
    story: Story, interval: str
) -> None:
    await story.recur("r", 0)
    await story.change("HSET", "r:r", "interval", interval)
    await story.put("a", 0)
    assert await story.pop(1, count=2) == ["a"]


# An empty jid, as the Ruby client allows


@pytest.mark.parametrize("end", ["complete", "complete_many", "fail", "retry", "release"])
async def test_job_with_an_empty_jid_runs_to_its_end(story: Story, end: str) -> None:
    await _stored(story, jid="")
    assert await story.pop(160) == [""]
    assert await story.store.heartbeat(jid="", worker="ann", now=161) == 221
    if end == "complete_many":
        assert await story.store.heartbeat_many(worker="ann", now=162, batch=[{"jid": ""}]) == [
            "222"
        ]
        assert await story.store.complete_many(
            worker="ann", now=163, batch=[{"jid": "", "queue": "mail"}]
        ) == ["complete"]
    elif end == "release":
        assert await story.store.release(jid="", worker="ann", now=162) == "waiting"
    else:
        await getattr(story, end)("", 162)
    expected = {"fail": "failed", "retry": "waiting", "release": "waiting"}.get(end, "complete")
    assert (await story.get(""))["state"] == expected


async def test_job_with_an_empty_jid_is_canceled_alone_and_with_others(story: Story) -> None:
    await _stored(story, jid="")
    assert await story.cancel("") == [""]
    await _stored(story, jid="")
    await _stored(story, jid="a")
    assert await story.store.cancel(jids=["", "a", ""], request="line:1") == ["", "a"]
    assert not await story.exists("j:") and not await story.exists("j:a")


# Tags that aren't strings, as qless allows

ODD = '[7,"x",null,true,["y"],1.5]'


async def _tagged(story: Story) -> None:
    """Create a waiting job with such tags, listed as qless lists it."""
    await _stored(story, tags=ODD)
    for tag in ("7", "x", "1.5"):
        await story.change("ZADD", f"t:{tag}", 5, "a")
        await story.change("ZADD", "tags", 1, tag)


async def test_readable_ones_of_malformed_tags_are_returned(story: Story) -> None:
    await _tagged(story)
    async with story.unchanged():
        assert (await story.get("a"))["tags"] == ["7", "x", "1.5"]
        assert [job["tags"] for job in await story.store.glances(jids=["a"])] == [["7", "x", "1.5"]]
        for tag in ("7", "x", "1.5"):
            assert (await story.store.tag_get(tag=tag))["jobs"] == ["a"]
    rows, _, _ = await story.store.pop_many(
        worker="ann", count=1, now=160, order="rotation", batch=[{"queue": "mail"}]
    )
    assert decode_row(rows[0], "ann").tags == ["7", "x", "1.5"]


async def test_check_leaves_malformed_tags_unchanged(story: Story) -> None:
    await _tagged(story)
    before = await story.all_keys()
    assert await findings(story, resolve="resolve", at=160) == []
    after = await story.all_keys()
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize("step", ["tag", "untag", "cancel", "put", "complete", "prune"])
async def test_every_command_accepts_a_job_with_malformed_tags(story: Story, step: str) -> None:
    await _tagged(story)
    if step == "tag":
        assert await story.store.tag_add(jid="a", now=160, tags=["x", "z", "7"]) == [
            "7",
            "x",
            "1.5",
            "z",
        ]
        assert await story.scores("tags") == {"7": 1, "x": 1, "1.5": 1, "z": 1}
        return
    if step == "untag":
        assert await story.store.tag_remove(jid="a", now=160, tags=["7"]) == ["x", "1.5"]
        assert await story.scores("tags") == {"x": 1, "1.5": 1}
        return
    if step == "cancel":
        assert await story.cancel("a") == ["a"]
    elif step == "put":
        await story.put("a", 160, tags=[])
    else:
        assert await story.pop(160) == ["a"]
        assert await story.complete("a", 161) == "complete"
        assert await story.scores("tags") == {"7": 1, "x": 1, "1.5": 1}
        if step == "complete":
            return
        await story.configure(jobs_history=10)
        await story.completed("b", 300, 301, 302)
        assert not await story.exists("j:a")
    assert await story.scores("tags") == {}
    assert not any([await story.exists(f"t:{tag}") for tag in ("7", "x", "1.5")])


async def test_malformed_tags_of_a_recurring_job_are_given_to_its_instances(story: Story) -> None:
    await story.recur("r", 0)
    await story.change("HSET", "r:r", "tags", ODD)
    assert (await story.store.recur_get(jid="r"))["tags"] == ["7", "x", "1.5"]
    assert await story.pop(1) == ["r-1"]
    assert (await story.get("r-1"))["tags"] == ["7", "x", "1.5"]
    assert await story.scores("tags") == {"7": 1, "x": 1, "1.5": 1}


async def test_numeric_failure_group_is_the_group_of_that_name(story: Story) -> None:
    await story.failed("a", 0, 1, 2, group="7")
    await story.change(
        "HSET", "j:a", "failure", '{"group":7,"message":"no","when":2,"worker":"ann"}'
    )
    async with story.unchanged():
        assert await findings(story, resolve="resolve", at=160) == []
    await story.put("a", 170)
    assert await story.store.failed() == {} and not await story.exists("f:7")


async def test_check_leaves_a_job_with_an_empty_jid_unchanged(story: Story) -> None:
    await _stored(story, jid="")
    assert await story.pop(160) == [""]
    async with story.unchanged():
        assert await findings(story, resolve="resolve", at=161) == []
