"""Request ids: a caller that lost the reply may repeat its call."""

from typing import Any

import pytest
from redis.exceptions import ResponseError

from aioqless.errors import InvalidArgument
from aioqless.store.command_header import command_names, read_command
from tests.lua.story import Story

Given = dict[str, Any]

_JOB: Given = {"klass": "Greet", "data": "{}", "delay": 0, "queue": "mail", "tags": ["x"]}
_ROW: Given = {"klass": "Greet"}
LIMITED = '{"limits": [{"key": "taken", "limit": 1}]}'

# Each command that changes state, where `idle` waits, ann runs `a` and bob `b`, `held` depends on
# `a`, `bad` has failed, and `r` recurs. Ended jobs are archived.
_WRITES: list[tuple[tuple[str, ...], Given]] = [
    (("put",), {**_JOB, "jid": "new", "now": 10}),
    (("put",), {**_JOB, "jid": "a", "now": 10}),
    (("requeue",), {**_JOB, "jid": "idle", "now": 10}),
    (("put_many",), {"queue": "mail", "now": 10, "batch": [{"jid": "new", **_ROW, "data": "1"},
        {"jid": "no", **_ROW, "data": "false"}]}),
    (("put_flow",), {"now": 10,
        "batch": [{"queue": "mail", "jid": "new", **_ROW, "data": "1", "depends": ["a"],
            "if_dependency_fails": "fail"}]}),
    (("set_put",), {"set_name": "i", "now": 10,
        "batch": [{"queue": "mail", "jid": "new", **_ROW, "data": "1"}]}),
    (("set_put_flow",), {"set_name": "i", "now": 10,
        "batch": [{"queue": "mail", "jid": "new", **_ROW, "data": "1", "depends": ["a"]}]}),
    (("move",), {"queue": "post", "jid": "idle", "now": 10}),
    (("set_close",), {"set_name": "i", "now": 10}),
    (("set_act", "retry"), {"set_name": "old", "now": 10, "cursor": 0}),
    (("set_act", "cancel"), {"set_name": "old", "now": 10, "cursor": 0, "place": "open"}),
    (("pop",), {"queue": "mail", "worker": "ann", "count": 9, "now": 10}),
    (("pop",), {"queue": "mail", "worker": "ann", "count": 9, "now": 1000}),
    (("pop",), {"queue": "nothing", "worker": "ann", "count": 9, "now": 10}),
    (("pop_many",), {"worker": "ann", "count": 9, "now": 10, "order": "rotation",
        "batch": [{"queue": "mail"}, {"queue": "post"}]}),
    (("peek",), {"queue": "mail", "count": 9, "now": 10}),
    (("heartbeat",), {"jid": "a", "worker": "ann", "now": 10, "data": "[1]"}),
    (("heartbeat_many",),
        {"worker": "ann", "now": 10, "batch": [{"jid": "a"}, {"jid": "b"}, {"jid": "ghost"}]}),
    (("complete",), {"jid": "a", "worker": "ann", "queue": "mail", "now": 10}),
    (("complete",), {"jid": "a", "worker": "ann", "queue": "mail", "now": 10, "next": "mail"}),
    (("complete_many",), {"worker": "ann", "now": 10,
        "batch": [{"jid": "a", "queue": "mail"}, {"jid": "b", "queue": "mail"}]}),
    (("fail",), {"jid": "a", "worker": "ann", "group": "typo", "message": "no", "now": 10}),
    (("on_failure", "declare"),
        {"klass": "K", "job": '{"queue": "q", "klass": "K", "data": "1"}', "now": 10}),
    (("retry",), {"jid": "a", "worker": "ann", "queue": "mail", "now": 10}),
    (("release",), {"jid": "a", "worker": "ann", "now": 10}),
    (("charge",), {"jid": "a", "worker": "ann", "now": 10, "key": "tokens", "used": 7}),
    (
        ("step",),
        {"jid": "a", "worker": "ann", "now": 10, "kind": "step", "name": "s", "result": "1"},
    ),
    (("wait",), {"jid": "a", "worker": "ann", "now": 10, "wait_kind": "wait", "name": "go"}),
    (("signal",), {"jid": "a", "now": 10, "name": "go", "result": "1"}),
    (("call",), {"jid": "a", "worker": "ann", "now": 10, "name": "pay",
        "child": '{"queue":"mail","klass":"Pay","data":"{}"}'}),
    (("emit",), {"worker": "ann", "now": 10, "batch": [{"jid": "a", "fence": "2", "start": 0,
        "count": 2, "values": "[1,2]", "ttl": 60}]}),
    (("emit_end",), {"jid": "a", "worker": "ann", "now": 10, "fence": "2", "start": 3,
        "values": "[]", "ttl": 60}),
    (
        ("decline",),
        {"jid": "a", "worker": "ann", "now": 10, "delay": 5, "timeout": 600, "group": "g"}
        | {"message": "m"},
    ),
    (("reserve",), {"queue": "mail", "person": "ada", "worker": "ada@1", "limit": 60, "now": 10}),
    (("extend",), {"jid": "a", "worker": "ann", "limit": 90, "now": 10}),
    (("hand_over",), {"jid": "a", "worker": "ann", "to": "eve", "limit": 90, "now": 10}),
    (("skip",), {"jid": "a", "person": "ann", "worker": "ann", "now": 10}),
    (("timeout",), {"jids": ["a", "b"], "now": 10}),
    (("cancel",), {"jids": ["idle", "ghost"]}),
    (("clear",), {"queue": "mail", "state": "waiting", "offset": 0, "now": 10,
        "states": ["waiting"]}),
    (("depends", "on"), {"jid": "held", "jids": ["idle"], "now": 10}),
    (("depends", "off"), {"jid": "held", "jids": ["all"], "now": 10}),
    (("unfail",), {"queue": "mail", "group": "typo", "now": 10}),
    (("revive", "group"), {"group": "typo", "now": 10}),
    (("free_limits",), {"jid": "taken", "now": 10, "constraints": LIMITED}),
    (("edit",), {"jid": "bad", "now": 10, "data": "[1]"}),
    (("revive", "job"), {"jid": "bad", "now": 10, "data": "[1]"}),
    (("audit_log", "add"),
        {"who": "ada", "act": "retry", "about": '{"jid":"bad"}', "outcome": "done"}),
    (("audit_log", "login"), {"who": "ada", "act": "log-in", "about": "{}", "outcome": "refused"}),
    (("mark",), {"text": "moved", "now": 10}),
    (("priority",), {"jid": "idle", "priority": -3}),
    (("tag", "add"), {"jid": "idle", "now": 10, "tags": ["y"]}),
    (("tag", "remove"), {"jid": "idle", "now": 10, "tags": ["x"]}),
    (("track", "track"), {"jid": "idle", "now": 10, "tags": ["y"]}),
    (("track", "untrack"), {"jid": "b", "now": 10}),
    (("log",), {"jid": "idle", "message": "note", "now": 10}),
    (("config", "set"), {"option": "heartbeat", "value": 5}),
    (("config", "unset"), {"option": "grace-period"}),
    (("recur", "on"), {"queue": "mail", "jid": "s", "klass": "Greet", "data": "{}", "now": 10,
        "interval": 60, "offset": 0}),
    (("recur", "off"), {"jid": "r"}),
    (("recur", "update"), {"jid": "r", "pairs": ["interval", 70]}),
    (("recur", "tag"), {"jid": "r", "tags": ["y"]}),
    (("recur", "untag"), {"jid": "r", "tags": ["x"]}),
    (("recur", "cron"), {"queue": "mail", "jid": "s", **_ROW, "data": "{}", "now": 10,
        "expression": "@", "timezone": "UTC", "next": 60}),
    (("recur", "pause"), {"jid": "r", "now": 10}),
    (("recur", "resume"), {"jid": "resting", "now": 10}),
    (("recur", "run"), {"jid": "r", "now": 10}),
    (("declare", "interval"), {"queue": "mail", "jid": "s", "klass": "K", "data": "{}", "now": 10,
        "next": 60, "interval": 60}),
    (("declare", "off"), {"jids": ["declared"]}),
    (("tick",), {"now": 10, "batch": [{"jid": "night", "tick": 7, "at": 7, "next": 90},
        {"jid": "ghost", "tick": 7, "at": 7, "next": 90}]}),
    (("pause",), {"queues": ["mail"]}),
    (("unpause",), {"queues": ["post"]}),
    (("forget",), {"queues": ["mail"]}),
    (("deregister",), {"workers": ["ann"]}),
    (("beat",), {"worker": "bob", "now": 10, "process": '{"id":"2"}', "queues": ["mail"],
        "number": 1, "counts": '[["mail","K",[0,0,9,9,18,1]]]'}),
    (("import", "queue"), {"prefix": "there:", "into": "", "now": 10, "queue": "mail",
        "side": "right", "count": 1}),
    (("sweep", "failed"), {"group": "typo"}),
    (("sweep", "completed"), {}),
    (("archive_trim",), {"id": "1-0", "reader": "lake", "now": 10}),
]  # fmt: skip


@pytest.fixture
async def filled_namespace(story: Story) -> Story:
    await story.failed("bad")
    limits = '{"limits": [{"key": "tokens", "rate": [100, 60], "cost": 5}]}'
    await story.running("a", tags=["x"], constraints=limits)
    await story.running("b", worker="bob")
    await story.put("held", 2, depends=["a"])
    await story.put("idle", 2, tags=["x"])
    await story.track("b", 3)
    await story.configure(grace_period=5)
    await story.recur("r", 4, offset=1, tags=["x"])
    await story.cron("night", 4, next=7)
    await story.recur("resting", 4)
    await story.store.recur_pause(jid="resting", now=5)
    declared: dict[str, Any] = {"queue": "mail", "klass": "Greet", "data": "{}", "interval": 60}
    await story.store.declare_interval(jid="declared", now=4, next=500, **declared)
    await story.store.pause(queues=["post"])
    await story.ask("LPUSH", "there:queue:mail", *['{"class":"K","args":[]}'] * 3)
    await story.completed("done")
    members = [{"queue": "sets", "jid": f"m{n}", **_ROW, "data": "1"} for n in range(2)]
    await story.call("set_put", set_name="old", now=5, batch=members)
    assert await story.pop(6, queue="sets") == ["m0"]
    await story.put("taken", 5, queue="other", constraints=LIMITED)
    assert await story.pop(6, queue="other", worker="eve") == ["taken"]
    await story.change("DEL", "j:taken")  # by another client
    await story.fail("m0", 7)
    await story.configure(archive="on")
    await story.store.beat(worker="ann", now=5, process='{"id":"1","place":"p"}')
    return story


async def _request(story: Story, command: tuple[str, ...], given: Given, request: str) -> Any:
    """Return the reply in a form that can be compared: refusals are strings."""
    reply = await story.call(*command, **given, request=request)
    return (
        [str(item) if isinstance(item, Exception) else item for item in reply]
        if isinstance(reply, list)
        else reply
    )


@pytest.mark.parametrize(
    ("command", "given"), _WRITES, ids=[" ".join(command) for command, _ in _WRITES]
)
async def test_repeated_request_gets_the_first_reply_and_does_nothing(
    filled_namespace: Story, command: tuple[str, ...], given: Given
) -> None:
    before = await filled_namespace.all_keys()
    first = await _request(filled_namespace, command, given, "c1:7")
    after = await filled_namespace.all_keys()
    async with filled_namespace.unchanged(), filled_namespace.published() as messages:
        again = await _request(filled_namespace, command, given, "c1:7")
    assert again == first
    assert messages == []
    if first not in ([], 0) and command != ("peek",):
        assert after != before, "a call without any effect proves nothing"


def test_every_writing_command_is_covered_here() -> None:
    commands = {name for name in command_names() if read_command(name).writes}
    assert commands - {command[0] for command, _ in _WRITES} <= {
        "agenda",
        "check",
        "remote_control",
        "remote_reply",
    }, "each note is done once; the last two only publish: test_remote_control"


async def test_request_id_of_another_command_is_refused(story: Story) -> None:
    await story.put("a", 0, request="c1:7")
    async with story.unchanged():
        with pytest.raises(InvalidArgument, match="'c1:7' was already used for put"):
            await story.store.pop_many(
                worker="ann",
                count=1,
                now=1,
                order="ordered",
                batch=[{"queue": "mail"}],
                request="c1:7",
            )
    assert await story.pop(1, request="c1:8") == ["a"]


async def test_sequences_of_requests_are_independent(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 1)
    assert (await story.pop(2, request="c1:7"), await story.pop(2, request="c2:7")) == (
        ["a"],
        ["b"],
    )


async def test_reply_is_kept_for_two_minutes(story: Story) -> None:
    await story.put("a", 0, request="c1:7")
    assert 110 < await story.ask("TTL", story.key("x:request:c1")) <= 120


async def test_one_reply_is_kept_per_sequence(story: Story) -> None:
    for n in range(1, 6):
        await story.put(f"j{n}", 0, request=f"c1:{n}")
    assert len(await story.ask("KEYS", story.key("x:request:*"))) == 1


async def test_raw_call_gives_its_request_id_behind_an_empty_argument(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 0)
    for _ in range(2):
        assert await story.by_hand("cancel", [], "a", "b", "", "request", "c1:7") == [b"a", b"b"]
    assert await story.by_hand("cancel", [], "a", "b", "", "request", "c1:8") == []


async def test_sequence_name_may_have_colons(story: Story) -> None:
    await story.put("a", 0, request="host:1:2")
    assert await story.exists("x:request:host:1")


async def test_reading_command_takes_no_request_id(story: Story) -> None:
    with pytest.raises(ResponseError, match="BADARG"):
        await story.by_hand("get", [], "a", "request", "c1:7")
