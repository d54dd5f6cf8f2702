"""Job sets: what scripts that put and end members do to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioqless.client.job.decoding import decode_row
from aioqless.errors import JobExists, NoSuchSet, SetClosed, WrongState
from tests.lua.story import Story

THEN = json.dumps({"queue": "mail", "klass": "Report", "data": '{"number":42}'})
ENDED = json.dumps({"queue": "mail", "klass": "CleanUp", "data": "{}", "priority": "5"})
CALLBACKS = {"then_put": THEN, "when_ended": ENDED, "callbacks": "1"}


async def add(story: Story, at: float, *jids: str, name: str = "i", **more: Any) -> list[Any]:
    """Put jobs into a set."""
    row = more.pop("row", {})
    batch = [{"queue": "mail", "jid": jid, "klass": "Load", "data": "{}", **row} for jid in jids]
    answers: list[Any] = await story.call("set_put", set_name=name, now=at, batch=batch, **more)
    return answers


async def close(story: Story, at: float, name: str = "i", **more: Any) -> None:
    await story.call("set_close", set_name=name, now=at, **more)


async def status(story: Story, name: str = "i") -> dict[str, Any]:
    """Return the numbers that aren't 0, and the callbacks that were put."""
    text, _ = await story.call("set_status", "one", set_name=name)
    found = json.loads(text)
    numbers = ("added", "open", "running", "held", "failed", "canceled", "then_jid", "ended_jid")
    return {key: found[key] for key in numbers if found.get(key)}


async def act(story: Story, word: str, at: float, **more: Any) -> int:
    cursor, count = await story.call("set_act", word, set_name="i", now=at, cursor=0, **more)
    assert cursor == "0"
    return int(count)


async def cancel(story: Story, at: float) -> int:
    return await act(story, "cancel", at, place="open") + await act(
        story, "cancel", at, place="held"
    )


async def finish(story: Story, at: float, *jids: str) -> None:
    """Pop and complete jobs."""
    for jid in jids:
        assert await story.pop(at) == [jid]
        assert await story.complete(jid, at) == "complete"


async def test_members_are_counted_by_what_became_of_them(story: Story) -> None:
    assert await add(story, 1, "a", "b", "c", "d") == ["a", "b", "c", "d"]
    assert await status(story) == {"added": 4, "open": 4}
    await finish(story, 2, "a")
    assert await story.pop(3) == ["b"]
    assert await status(story) == {"added": 4, "open": 3, "running": 1}
    await story.fail("b", 4)
    await story.store.cancel(jids=["c"])
    assert await status(story) == {"added": 4, "open": 1, "failed": 1, "canceled": 1}


async def test_empty_closed_set_has_ended(story: Story) -> None:
    await close(story, 1, **CALLBACKS)
    assert await status(story) == {"then_jid": "i-then-1", "ended_jid": "i-ended-1"}


@pytest.mark.parametrize("how", ["revive group", "revive job", "unfail", "put", "requeue"])
async def test_member_that_others_retry_is_open_again(story: Story, how: str) -> None:
    await add(story, 1, "a")
    await story.pop(2)
    await story.fail("a", 3)
    given: dict[str, Any] = {"klass": "Load", "data": "{}", "queue": "mail", "jid": "a"}
    match how:
        case "revive group":
            await story.call("revive", "group", group="typo", now=4)
        case "revive job":
            await story.call("revive", "job", jid="a", now=4)
        case "unfail":
            await story.call("unfail", queue="mail", group="typo", now=4)
        case _:
            limits = '{"limits":[{"key":"k","limit":1}]}'
            await story.call(how, **given, now=4, constraints=limits)
    assert await status(story) == {"added": 1, "open": 1}
    await finish(story, 5, "a")
    assert await status(story) == {"added": 1}


async def test_retries_advances_and_lost_locks_keep_a_member_open(story: Story) -> None:
    await add(story, 1, "a")
    await story.pop(2)
    await story.retry("a", 3)
    await story.pop(4)
    assert await story.complete("a", 5, next="other") == "waiting"
    assert await story.pop(6, queue="other") == ["a"]
    await story.release("a", 7)
    assert await status(story) == {"added": 1, "open": 1}
    assert await story.pop(8, queue="other") == ["a"]
    await story.complete("a", 9, queue="other")
    assert await status(story) == {"added": 1}


async def test_exhausted_member_has_failed(story: Story) -> None:
    await add(story, 1, "a", row={"retries": 0})
    await story.pop(2)
    await story.retry("a", 3)
    assert await status(story) == {"added": 1, "failed": 1}


async def test_limits_and_unique_keys_work_beside_a_set(story: Story) -> None:
    limits = '{"unique":"u","until":"done","limits":[{"key":"k","limit":1}]}'
    assert await add(story, 1, "a", row={"constraints": limits}) == ["a"]
    assert await add(story, 2, "b", row={"constraints": limits}) == ["a"]
    assert await status(story) == {"added": 1, "open": 1}
    await finish(story, 3, "a")
    assert await add(story, 4, "b", row={"constraints": limits}) == ["b"]
    assert await status(story) == {"added": 2, "open": 1}


async def test_existing_job_joins_as_what_it_is(story: Story) -> None:
    await story.completed("a")
    keep = {"constraints": '{"if_exists":"keep"}'}
    assert await add(story, 3, "a", "b", row=keep) == ["a", "b"]
    assert await status(story) == {"added": 2, "open": 1}


async def test_member_of_another_set_is_refused(story: Story) -> None:
    await add(story, 1, "a")
    (answer,) = await add(story, 2, "a", name="other")
    assert isinstance(answer, JobExists)
    assert await status(story) == {"added": 1, "open": 1}
    assert await status(story, "other") == {}


async def test_debounced_put_into_another_set_than_that_of_its_job_is_refused(
    story: Story,
) -> None:
    constraints = {"unique": "k", "until": "done", "debounce": 30}
    row = {"constraints": json.dumps(constraints)}
    assert await add(story, 1, "a", row=row) == ["a"]
    assert await add(story, 2, "b", row=row) == ["a"]
    (refused,) = await add(story, 3, "c", row=row, name="other")
    assert isinstance(refused, JobExists)
    assert await status(story) == {"added": 1, "open": 1}


async def test_only_running_members_add_to_a_closed_set(story: Story) -> None:
    await add(story, 1, "a", "b")
    await close(story, 2)
    with pytest.raises(SetClosed):
        await add(story, 3, "c")
    await story.pop(4)
    with pytest.raises(SetClosed):
        await add(story, 5, "c", member="a", fence="99")
    with pytest.raises(SetClosed):
        await add(story, 5, "c", member="b", fence="1")
    assert await add(story, 6, "c", member="a", fence="1") == ["c"]
    await story.complete("a", 7)
    with pytest.raises(SetClosed):
        await add(story, 8, "d", member="a", fence="1")
    assert await status(story) == {"added": 3, "open": 2}


async def test_other_callbacks_are_refused_later(story: Story) -> None:
    await add(story, 1, "a", **CALLBACKS)
    await add(story, 2, "b", **CALLBACKS)
    await close(story, 3)
    with pytest.raises(WrongState, match="callbacks"):
        await close(story, 3, then_put=ENDED, callbacks="2")
    await add(story, 4, "c", name="none")
    with pytest.raises(WrongState, match="callbacks"):
        await close(story, 5, "none", **CALLBACKS)


async def test_unknown_set_has_no_status(story: Story) -> None:
    with pytest.raises(NoSuchSet):
        await status(story)


async def test_clear_counts_as_canceled(story: Story) -> None:
    await add(story, 1, "a", "b")
    await story.call("clear", queue="mail", state="waiting", offset=0, now=2, states=["waiting"])
    assert await status(story) == {"added": 2, "canceled": 2}


async def test_canceling_cancels_dependents_unless_they_run_after_failures(story: Story) -> None:
    await add(story, 1, "a")
    await add(story, 1, "b", row={"depends": ["a"]})
    await story.put("x", 2, depends=["b"])
    await story.put("y", 2, depends=["a"], if_dependency_fails="run")
    assert await cancel(story, 3) == 2
    await story.tick(4)
    assert await story.store.get(jid="x") is None
    assert await story.pop(5) == ["y"]


async def test_member_that_a_failed_one_holds_has_ended(story: Story) -> None:
    await add(story, 1, "a", **CALLBACKS)
    await add(story, 1, "b", row={"depends": ["a"]})
    await add(story, 1, "c", row={"depends": ["b"]})
    await close(story, 2)
    await story.pop(3)
    await story.fail("a", 4)
    assert await status(story) == {
        "added": 3,
        "failed": 1,
        "held": 2,
        "ended_jid": "i-ended-1",
    }
    assert await act(story, "retry", 5) == 1
    assert await status(story) == {"added": 3, "open": 3, "ended_jid": "i-ended-1"}
    assert await story.pop(6, count=5) == ["a", "i-ended-1"]
    for jid in "abc":
        assert jid == "a" or await story.pop(6) == [jid]
        await story.complete(jid, 7)
    assert await status(story) == {
        "added": 3,
        "then_jid": "i-then-1",
        "ended_jid": "i-ended-1",
    }


async def test_held_member_is_open_when_it_no_longer_depends(story: Story) -> None:
    await story.failed("x")
    await add(story, 3, "a", row={"depends": ["x"]})
    assert await status(story) == {"added": 1, "held": 1}
    await story.call("depends", "off", jid="a", jids=["x"])
    assert await status(story) == {"added": 1, "open": 1}


async def test_review_finds_what_other_clients_have_done(story: Story) -> None:
    await add(story, 1, "a", "b", "c", "d", **CALLBACKS)
    await close(story, 1)
    for jid, state in (("a", "complete"), ("b", "failed"), ("d", "waiting")):
        await story.redis.hset(f"{story.namespace}:j:{jid}", "state", state)
    await story.redis.delete(f"{story.namespace}:j:c")
    await story.tick(20)
    assert await status(story) == {"added": 4, "open": 4}
    await story.tick(30)
    assert await status(story) == {"added": 4, "open": 1, "failed": 1, "canceled": 1}
    await story.redis.hset(f"{story.namespace}:j:d", "state", "complete")
    await story.tick(60)
    assert await status(story) == {
        "added": 4,
        "failed": 1,
        "canceled": 1,
        "ended_jid": "i-ended-1",
    }


async def test_set_is_deleted_after_its_retention(story: Story) -> None:
    await add(story, 1, "a", "b")
    await close(story, 1)
    await story.pop(2)
    await story.fail("a", 3)
    await finish(story, 4, "b")
    week = 604800
    for at in (week, week + 5):
        await story.tick(at)
        if at == week:
            assert await status(story) == {"added": 2, "failed": 1}
            assert await story.reviewed("set", "1") == week + 620
    assert await status(story) == {"added": 2, "failed": 1}
    await story.tick(week + 620)
    assert await story.noted() == []
    with pytest.raises(NoSuchSet):
        await status(story)
    assert await story.call("revive", "job", jid="a", now=week + 7) == 1
    await add(story, week + 8, "c")
    assert await status(story) == {"added": 1, "open": 1}
    await finish(story, week + 9, "a")
    assert await status(story) == {"added": 1, "open": 1}


async def test_results_are_listed(story: Story) -> None:
    await add(story, 1, "a", "b")
    await story.pop(2)
    await story.complete("a", 3, result="60 5")
    await finish(story, 4, "b")
    found = await story.call("set_status", "members", set_name="i", place="results", cursor=0)
    assert found == ["0", "a"]


async def test_failure_groups_are_the_largest(story: Story) -> None:
    jids = [f"j{number:03}" for number in range(30)]
    await add(story, 1, *jids)
    for number, jid in enumerate(jids):
        await story.pop(2)
        await story.fail(jid, 3, group="typo" if number < 5 else f"g{number}")
    _, text = await story.call("set_status", "one", set_name="i")
    groups = json.loads(text)
    assert len(groups) == 20 and groups[0] == {"group": "typo", "count": 5}


async def test_sets_are_listed_latest_first(story: Story) -> None:
    for number in range(3):
        await add(story, number, f"a{number}", name=f"s{number}")
    found = await story.call("set_status", "page", offset=1, most=5)
    assert [json.loads(each)["name"] for each in found] == ["s1", "s0"]


async def test_popped_member_has_the_name_of_its_set(story: Story) -> None:
    await add(story, 1, "a")
    await story.put("b", 2, constraints='{"limits":[{"key":"k","limit":1}]}')
    given: dict[str, Any] = {
        "worker": "ann",
        "count": 5,
        "now": 3,
        "order": "ordered",
        "request": "r:1",
    }
    for _ in range(2):
        rows, *_ = await story.store.pop_many(**given, batch=[{"queue": "mail"}])
        found = [decode_row(row, "ann") for row in rows]
        assert [(job.jid, job.set_name) for job in found] == [("a", "i"), ("b", None)]
