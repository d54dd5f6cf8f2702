"""Consistency of a namespace in use."""

import random
from typing import Any

from aioqless.errors import ScriptError
from tests.lua.check.all_states import findings
from tests.lua.story import Story


async def test_all_commands_together_keep_a_namespace_consistent(story: Story) -> None:
    await run_commands(story, random.Random(7), steps=1500, check_every=100)


async def test_check_of_a_changing_namespace_finds_nothing(story: Story) -> None:
    await run_commands(story, random.Random(8), steps=1000, check_every=1)


async def run_commands(
    story: Story, chance: random.Random, *, steps: int, check_every: int
) -> None:
    """Run random commands, with a full check now and then, or one step of a check after each."""
    at, cursor = 0.0, ""
    for number in range(steps):
        at += chance.choice([0, 0, 0.5, 1, 5, 30, 400])
        word, arguments = run_command(chance, at)
        try:
            await story.call(*word, **arguments)
        except ScriptError:
            continue
        if check_every == 1:
            reply = await story.store.check(now=at, cursor=cursor, budget=15)
            assert reply["found"] == [], (number, word, arguments)
            cursor = reply["cursor"]
        elif number % check_every == 0:
            assert await findings(story, at=at) == [], (number, word, arguments)


def run_command(chance: random.Random, at: float) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Run a random command that is possible now."""
    jid, other, third = (f"j{chance.randrange(12)}" for _ in range(3))
    queue, goal = (chance.choice(["mail", "post"]) for _ in range(2))
    worker, group = chance.choice(["ann", "bob"]), chance.choice(["typo", "rare"])
    delay, tags = (
        chance.choice([0, 0, 0, 10, 300]),
        chance.sample(["x", "y", "z"], chance.randrange(3)),
    )
    put = {"jid": jid, "klass": "K", "data": "{}"}
    more = {"priority": chance.choice([None, 0, -3]), "tags": chance.choice([None, tags]),
        "retries": chance.choice([None, 0, 2]),
            "depends": chance.choice([None, None, [other], [other, third]])}  # fmt: skip
    run = {"jid": jid, "worker": worker, "now": at}
    coming = at // 100 * 100 + 100
    ticks = range(max(0, int(coming) - 2000), int(at), 100)
    calls: list[tuple[int, tuple[str, ...], dict[str, Any]]] = [
        (12, ("put",), {**put, **more, "queue": queue, "now": at, "delay": delay,
            "worker": chance.choice([None, worker])}),
        (3, ("requeue",), {**put, **more, "queue": queue, "now": at, "delay": delay}),
        (3, ("put_many",),
            {"queue": queue, "now": at,
                "batch": [{**put, **more, "delay": delay}, {**put, "jid": other}]}),
        (14, ("pop",), {"queue": queue, "worker": worker, "count": chance.randrange(4), "now": at}),
        (4, ("pop_many",),
            {"worker": worker, "count": 3, "now": at,
                "order": chance.choice(["ordered", "rotation", "waiting"]),
                            "batch": [{"queue": "mail"}, {"queue": "post", "limit": 1}]}),
        (2, ("peek",), {"queue": queue, "count": 3, "now": at}),
        (6, ("heartbeat",), {**run, "data": chance.choice(["", "[1]"])}),
        (2, ("heartbeat_many",),
            {"worker": worker, "now": at, "batch": [{"jid": jid}, {"jid": other}]}),
        (14, ("complete",), {**run, "queue": queue}),
        (8, ("complete",), {**run, "queue": queue, "next": goal, "delay": delay,
            "depends": more["depends"]}),
        (4, ("complete_many",),
            {"worker": worker, "now": at,
                "batch": [{"jid": jid, "queue": queue}, {"jid": other, "queue": goal}]}),
        (8, ("fail",), {**run, "group": group, "message": "no"}),
        (4, ("fail",), {**run, "worker": "", "group": group, "message": "no"}),
        (8, ("retry",), {**run, "queue": queue, "delay": delay,
            **({"group": group, "message": "no"} if delay else {})}),
        (6, ("release",), {**run, "delay": delay}),
        (3, ("timeout",), {"now": at, "jids": [jid]}),
        (6, ("cancel",), {"jids": [jid, other, third]}),
        (6, ("depends", "on"), {"jid": jid, "jids": [other, third], "now": at}),
        (6, ("depends", "off"), {"jid": jid, "jids": chance.choice([[other], ["all"]]), "now": at}),
        (6, ("unfail",), {"queue": queue, "group": group, "now": at, "count": chance.randrange(3)}),
        (4, ("priority",), {"jid": jid, "priority": chance.randrange(-3, 3)}),
        (2, ("log",), {"jid": jid, "message": "hm", "now": at}),
        (4, ("tag", "add"), {"jid": jid, "now": at, "tags": tags}),
        (4, ("tag", "remove"), {"jid": jid, "now": at, "tags": tags}),
        (2, ("track", "track"), {"jid": jid, "now": at, "tags": tags}),
        (2, ("track", "untrack"), {"jid": jid, "now": at}),
        (1, ("pause",), {"queues": [queue]}),
        (3, ("unpause",), {"queues": ["mail", "post"]}),
        (1, ("deregister",), {"workers": [worker]}),
        (2, ("config", "set"), {"option": "grace-period", "value": chance.choice([0, 10])}),
        (1, ("config", "set"), {"option": "jobs-history", "value": chance.choice([100, 1e6])}),
        (1, ("config", "set"), {"option": "max-worker-age", "value": chance.choice([100, 1e6])}),
        (3, ("recur", "on"), {**put, "jid": "r", "queue": queue, "now": at, "interval": 60,
            "offset": delay, "tags": tags,
                              "backlog": chance.choice([None, 0, 3])}),
        (1, ("recur", "off"), {"jid": "r"}),
        (2, ("recur", "update"),
            {"jid": "r", "pairs": ["queue", queue, "interval", chance.choice([30, 90])]}),
        (1, ("recur", "tag"), {"jid": "r", "tags": tags or ["x"]}),
        (3, ("recur", "cron"), {**put, "jid": "r", "queue": queue, "now": at, "expression": "@",
            "timezone": "UTC", "next": coming,
                                "tags": tags}),
        (4, ("tick",), {"now": at,
            "batch": [{"jid": "r", "tick": tick, "at": at, "next": coming} for tick in ticks]}),
        (2, ("recur", "pause"), {"jid": "r", "now": at}),
        (2, ("recur", "resume"), {"jid": "r", "now": at, "next": coming}),
        (1, ("recur", "run"), {"jid": "r", "now": at}),
        (2, ("declare", "interval"), {**put, "jid": "r", "queue": queue, "now": at, "next": coming,
            "interval": 60}),
        (1, ("declare", "off"), {"jids": ["r"]}),
    ]  # fmt: skip
    [(_, word, arguments)] = chance.choices(calls, [weight for weight, _, _ in calls])
    return word, arguments
