"""call: jobs that another job has put and waits for, and how it learns of their end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, JobExists, LockLost
from tests.lua.story import Story
from tests.lua.test_steps import read

CALL = "call:charge"
CHILD = {"queue": "pay", "klass": "Charge", "data": '{"order":7}'}


async def call(story: Story, at: float, name: str = "charge", **more: Any) -> list[str]:
    child = json.dumps({**CHILD, **more.pop("child", {})})
    given = {"jid": "a", "worker": "ann", "child": child, **more}
    found: list[str] = await story.call("call", now=at, name=name, **given)
    return found


async def parked(story: Story, *names: str, **more: Any) -> None:
    """Put a job that runs at 1, calls others from 2 on, and is parked at 3."""
    await story.running("a")
    for name in names or ("charge",):
        await call(story, 2, name, **more)
    fields = [f"call:{name}" for name in names or ("charge",)]
    assert await story.release("a", 3, waiting=fields) == "scheduled"


async def pop_child(story: Story, at: float = 4, jid: str = "a-1") -> None:
    assert await story.pop(at, queue="pay", worker="bob") == [jid]


async def complete_child(story: Story, at: float, answer: str = "42") -> None:
    await pop_child(story, at - 1)
    given = {"worker": "bob", "queue": "pay", "durable": f"1 {answer}"}
    assert await story.complete("a-1", at, **given) == "complete"


async def outcome(story: Story, at: float, name: str = "charge") -> Any:
    """Pop the parent, and return how the call has ended."""
    assert await story.pop(at) == ["a"]
    kind, entry = await call(story, at, name)
    assert kind == "called"
    return json.loads(entry.split(" ", 3)[3])


async def test_child_is_put_once(story: Story) -> None:
    await story.running("a")
    assert await call(story, 2) == ["call", "a-1"]
    assert await call(story, 3) == ["call", "a-1"]
    child = await story.get("a-1")
    assert (child["queue"], child["klass"], child["data"]) == ("pay", "Charge", '{"order":7}')
    assert await read(story) == {CALL: '1 2.000 1 {"jid":"a-1"}'}
    assert await call(story, 4, "other") == ["call", "a-2"]


@pytest.mark.parametrize("child", [{}, {"klass": "Keeps"}])
@pytest.mark.parametrize("parks", [True, False])
@pytest.mark.parametrize("history", ["100", "0"])
async def test_parent_that_looks_before_the_end_of_its_child_is_passed_on_gets_its_result(
    story: Story, child: dict[str, str], parks: bool, history: str
) -> None:
    await story.configure(jobs_history_count=history)
    await story.running("a")
    await call(story, 2, child=child)
    await pop_child(story)
    kept = "60 42" if child else None
    done = story.store.complete(
        jid="a-1", worker="bob", queue="pay", now=5, durable="1 42", result=kept
    )
    await story.send_and_be_killed(done)
    if parks:
        assert await story.release("a", 6, waiting=[CALL]) == "waiting"
        assert await story.pop(6) == ["a"]
    kind, entry = await call(story, 6)
    assert (kind, json.loads(entry.split(" ", 3)[3])) == ("called", {"jid": "a-1", "result": 42})
    await story.call("tick", now=7, batch=[])
    assert await story.exists("x:result:a-1") == bool(child)
    assert not await story.noted()


async def test_worker_of_a_running_parent_is_told(story: Story) -> None:
    await story.running("a")
    await call(story, 2)
    async with story.published("log", "x:ready") as messages:
        await complete_child(story, 5)
    assert ("w:ann", {"event": "signaled", "jid": "a", "name": "charge"}) in messages


@pytest.mark.parametrize("end", ["complete", "fail", "delete"])
async def test_child_that_another_client_ended_is_found_within_a_minute(
    story: Story, end: str
) -> None:
    await parked(story)
    if end == "complete":
        await pop_child(story)
        await story.complete("a-1", 5, worker="bob", queue="pay", result="60 42")
    elif end == "fail":
        failure = '{"group":"g","message":"no","when":5,"worker":"x"}'
        await story.ask("HSET", story.key("j:a-1"), "state", "failed", "failure", failure)
    else:
        await story.ask("DEL", story.key("j:a-1"))
    assert await story.pop(62) == []
    ended = await outcome(story, 63)
    assert ended.get("result", ended.get("group")) == {
        "complete": 42, "fail": "g", "delete": "canceled",
    }[end]  # fmt: skip


async def test_child_that_another_client_ended_is_found_when_the_parent_parks(
    story: Story,
) -> None:
    await story.running("a")
    await call(story, 2)
    await story.ask("HSET", story.key("j:a-1"), "state", "complete")
    assert await story.release("a", 3, waiting=[CALL]) == "waiting"
    assert [*await read(story)] == ["called:charge"]


async def test_later_end_of_the_child_changes_nothing(story: Story) -> None:
    await parked(story)
    await pop_child(story)
    await story.fail("a-1", 10, worker="bob", group="g", message="no")
    await story.call("revive", "job", jid="a-1", now=11)
    await complete_child(story, 13)
    assert (await outcome(story, 14))["group"] == "g"


async def test_number_that_is_in_use_is_left_out(story: Story) -> None:
    await story.put("a-1", 0, queue="pay")
    await story.running("a")
    assert await call(story, 2) == ["call", "a-2"]


async def test_child_with_a_taken_unique_key_is_refused(story: Story) -> None:
    key = '{"unique":"k","until":"done"}'
    await story.put("b", 0, queue="pay", constraints=key)
    await story.running("a")
    await call(story, 2, "first")
    async with story.refused(JobExists, jid="b"):
        await call(story, 2, child={"constraints": key})


async def test_run_that_lost_its_lock_puts_nothing(story: Story) -> None:
    await story.running("a")
    async with story.refused(LockLost, jid="a"):
        await call(story, 2, fence=99)
    assert await story.get("a-1") is None


async def test_canceling_the_parent_cancels_its_children_and_theirs(story: Story) -> None:
    await parked(story, "charge")
    await pop_child(story)
    held = {"jid": "a-1", "worker": "bob"}
    await story.call("call", now=5, name="deep", child=json.dumps(CHILD), **held)
    await story.cancel("a")
    assert [await story.get(jid) for jid in ("a", "a-1", "a-1-1")] == [None] * 3
    assert await story.noted() == []


async def test_many_children_are_canceled_in_portions(story: Story) -> None:
    await parked(story, *(f"n{n}" for n in range(150)))
    await story.cancel("a")
    assert len(await story.noted()) == 100
    for _ in range(2):
        await story.call("tick", now=10, batch=[])
    assert await story.noted() == []
    assert not [key for key in await story.all_keys() if key.startswith("j:a-")]


async def test_child_on_which_another_job_depends_continues_without_its_parent(
    story: Story,
) -> None:
    await parked(story, "charge", "other")
    await story.put("b", 5, depends='["a-1"]')
    await story.cancel("a")
    assert (await story.get("a-1"))["state"] == "waiting"
    assert await story.get("a-2") is None
    await complete_child(story, 7)
    assert (await story.get("b"))["state"] == "waiting"


async def test_children_of_a_job_that_another_client_deleted_are_canceled(story: Story) -> None:
    await parked(story)
    await story.ask("DEL", story.key("j:a"))
    await story.call("tick", now=603, batch=[])
    assert await story.get("a-1") is None


async def test_limit_of_steps_is_one_of_children(story: Story) -> None:
    await story.store.config_set(option="max-steps", value="2")
    await story.running("a")
    await call(story, 2, "one")
    await call(story, 2, "two")
    async with story.refused(InvalidArgument, argument="name"):
        await call(story, 2, "three")
    assert await story.get("a-3") is None
