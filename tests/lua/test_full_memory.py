"""Redis at its memory limit refuses new jobs; existing ones can run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aioqless.errors import QueueFull
from aioqless.store import CompleteManyRow
from tests.lua.story import Story


@asynccontextmanager
async def full(story: Story) -> AsyncIterator[None]:
    await story.ask("CONFIG", "SET", "maxmemory", "1")
    try:
        yield
    finally:
        await story.ask("CONFIG", "SET", "maxmemory", "0")


async def test_new_jobs_are_refused_with_a_specific_error(story: Story) -> None:
    await story.put("a", 0)
    async with full(story):
        for _ in range(2):
            with pytest.raises(QueueFull):
                await story.put("b", 1)
        with pytest.raises(QueueFull):
            await story.store.put_many(
                queue="mail", now=1, batch=[{"jid": "b", "klass": "K", "data": "1"}]
            )
        with pytest.raises(QueueFull):
            await story.store.requeue(queue="mail", jid="a", klass="K", data="1", now=1, delay=0)
        with pytest.raises(QueueFull):
            await story.recur("r", 1)
    assert (await story.get("b"), await story.event_times("a")) == (None, [(0, "put")])


async def test_full_queue_can_be_drained(story: Story) -> None:
    for jid in "abcdefg":
        await story.put(jid, ord(jid))
    await story.put("held", 200, depends=["a"])
    async with full(story):
        assert await story.pop(201, count=9) == list("abcdefg")
        assert await story.heartbeat("a", 202) == 262
        assert await story.complete("a", 203) == "complete"
        assert await story.complete("b", 203, next="post") == "waiting"
        assert await story.fail("c", 204) == "c"
        assert await story.retry("d", 205) == 4
        assert await story.release("e", 206) == "waiting"
        await story.timeout("f", at=207)
        assert await story.cancel("g") == ["g"]
        assert await story.store.unfail(queue="mail", group="typo", now=208) == 1
        assert await story.state("held") == "waiting"
        rows, _, _ = await story.store.pop_many(
            worker="ann", count=9, now=209, order="ordered", batch=[{"queue": "mail"}]
        )
        assert {row[0] for row in rows} == {b"c", b"d", b"e", b"f", b"held"}
        done: list[CompleteManyRow] = [{"jid": row[0].decode(), "queue": "mail"} for row in rows]
        assert (
            await story.store.complete_many(worker="ann", now=210, batch=done) == ["complete"] * 5
        )


async def test_pop_makes_no_recurring_instances(story: Story) -> None:
    await story.put("a", 0)
    await story.recur("r", 0)
    async with full(story):
        assert await story.pop(1, count=2) == ["a"]
        assert await story.peek(1) == []
    assert await story.pop(2, count=2) == ["r-1"]


async def test_reads_and_repeated_requests_are_answered(story: Story) -> None:
    await story.put("a", 0)
    async with full(story):
        assert await story.pop(1, request="c1:1") == ["a"]
        assert await story.pop(1, request="c1:1") == ["a"]
        assert (await story.state("a"), await story.counts(2)) == ("running", {"running": 1})


async def test_runs_store_steps_waits_and_calls_and_get_signals(story: Story) -> None:
    await story.running("a")
    held = {"jid": "a", "worker": "ann"}
    async with full(story):
        await story.call("step", kind="step", name="plan", result="1", now=2, **held)
        await story.call("step", kind="cursor", name="rows", result="2", now=2, **held)
        assert await story.call("wait", wait_kind="wait", name="go", now=2, **held) == ["wait", ""]
        child = '{"queue":"mail","klass":"K","data":"1"}'
        assert (await story.call("call", name="c", child=child, now=2, **held)) == ["call", "a-1"]
        assert await story.release("a", 3, waiting=["wait:go", "call:c"]) == "scheduled"
        await story.call("signal", jid="a", name="go", result="3", now=4)
        assert await story.state("a") == "waiting"
