"""What follows for other jobs is done once, also if the client that noted it was killed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from aioqless.store import Call
from tests.lua.story import Story
from tests.lua.test_calls import call as call_child

BRANCH = json.dumps({"queue": "help", "klass": "Apologize", "data": "{}"})
Case: TypeAlias = Callable[[Story], Awaitable[tuple[Call[Any], str, str | None]]]


def fail(story: Story, jid: str) -> Call[Any]:
    return story.store.fail(jid=jid, worker="ann", group="typo", message="no", now=3)


async def failure(story: Story) -> tuple[Call[Any], str, str | None]:
    await story.running("a", on_failure=BRANCH)
    return fail(story, "a"), "a-failure-1", "waiting"


async def policy(story: Story) -> tuple[Call[Any], str, str | None]:
    await story.running("a")
    await story.put("b", 1, depends='["a"]', if_dependency_fails="fail")
    return fail(story, "a"), "b", "failed"


async def end_of_a_child(story: Story) -> tuple[Call[Any], str, str | None]:
    await story.running("a")
    await call_child(story, 2)
    assert await story.release("a", 2, waiting=["call:charge"]) == "scheduled"
    assert await story.pop(2, queue="pay") == ["a-1"]
    done = story.store.complete(jid="a-1", worker="ann", queue="pay", now=3, durable="1 42")
    return done, "a", "waiting"


async def cancellation_of_a_parent(story: Story) -> tuple[Call[Any], str, str | None]:
    await story.running("a")
    await call_child(story, 2)
    return story.store.cancel(jids=["a"]), "a-1", None


async def end_of_a_set(story: Story) -> tuple[Call[Any], str, str | None]:
    rows = [{"queue": "mail", "jid": "a", "klass": "Greet", "data": "{}"}]
    await story.call("set_put", set_name="s", now=0, batch=rows, when_ended=BRANCH)
    await story.call("set_close", set_name="s", now=0)
    assert await story.pop(1) == ["a"]
    done = story.store.complete(jid="a", worker="ann", queue="mail", now=3)
    return done, "s-ended-1", "waiting"


CASES = pytest.mark.parametrize(
    "case", [failure, policy, end_of_a_child, cancellation_of_a_parent, end_of_a_set]
)


async def state(story: Story, jid: str) -> str | None:
    job = await story.get(jid)
    return job and job["state"]


@CASES
async def test_what_follows_is_done_when_a_call_returns(story: Story, case: Case) -> None:
    call, jid, wanted = await case(story)
    await call
    assert await state(story, jid) == wanted
    assert not await story.noted()


@CASES
async def test_tick_does_once_what_a_killed_client_has_noted(story: Story, case: Case) -> None:
    call, jid, wanted = await case(story)
    before = await state(story, jid)
    await story.send_and_be_killed(call)
    assert await state(story, jid) == before != wanted
    await story.call("tick", now=4, batch=[])
    assert await state(story, jid) == wanted
    assert not await story.noted()
    async with story.unchanged():
        await story.store.agenda(now=5)


@CASES
async def test_repeated_call_does_what_the_first_has_noted(story: Story, case: Case) -> None:
    call, jid, wanted = await case(story)
    call.request = "c1:7"
    await story.send_and_be_killed(call, call.request)
    await call
    assert await state(story, jid) == wanted
    assert not await story.noted()


async def test_failure_of_a_job_that_was_deleted_meanwhile_is_reacted_to(story: Story) -> None:
    call, jid, _ = await failure(story)
    await story.send_and_be_killed(call)
    await story.send_and_be_killed(story.store.cancel(jids=["a"]))
    await story.call("tick", now=4, batch=[])
    assert await state(story, jid) == "waiting"
    assert not await story.exists("j:a")


@pytest.mark.parametrize("killed", [False, True])
async def test_dependents_beyond_the_first_portion_are_released_later(
    story: Story, killed: bool
) -> None:
    await story.running("hub")
    for number in range(250):
        await story.put(f"j{number}", 2, depends=["hub"])
    done = story.store.complete(jid="hub", worker="ann", queue="mail", now=3)
    await (story.send_and_be_killed(done) if killed else done)
    assert len(await story.scores("q:mail-work")) == (100 if killed else 200)
    for _ in range(2):
        await story.tick(4)
    assert len(await story.scores("q:mail-work")) == 250
    assert not await story.noted()


async def test_pop_that_finds_too_few_jobs_looks_for_what_is_noted(story: Story) -> None:
    call, jid, wanted = await policy(story)
    await story.send_and_be_killed(call)
    assert await story.pop(4, queue="elsewhere") == []
    assert await state(story, jid) == wanted


@pytest.mark.parametrize("order", ["ordered", "rotation", "waiting"])
async def test_idle_worker_looks_for_what_is_noted(story: Story, order: str) -> None:
    call, jid, wanted = await policy(story)
    await story.send_and_be_killed(call)
    assert await story.store.ready(queues=["elsewhere"], now=4) == "0"
    await story.store.pop_many(
        worker="ann", count=1, now=4, order=order, batch=[{"queue": "elsewhere"}]
    )
    assert await state(story, jid) == wanted
    assert not await story.noted()
