"""Scripts that the server lost in a restart or failover are loaded again without losing a call."""

from typing import Any

import pytest

from aioqless.errors import LockLost, NoSuchJob
from aioqless.store import Call, ScriptStore
from aioqless.store.call import T
from tests.lua.story import Story, score


class _FlushingConnection(ScriptStore):
    """The server forgets all scripts before each call."""

    async def send(self, call: Call[T]) -> T:
        await self.connection.execute("SCRIPT", "FLUSH", "SYNC")
        return await super().send(call)


@pytest.fixture
def flushing_store(story: Story) -> Story:
    return Story(_FlushingConnection(story.store.connection, story.namespace), story.redis)


async def _forget(story: Story) -> None:
    await story.ask("SCRIPT", "FLUSH", "SYNC")


async def test_job_runs_although_scripts_are_flushed_between_all_calls(
    flushing_store: Story,
) -> None:
    story = flushing_store
    await story.put("a", 0)
    await story.put("b", 0, depends=["a"])
    assert await story.pop(1) == ["a"]
    assert await story.heartbeat("a", 2) == 62
    assert await story.retry("a", 3) == 4
    assert await story.pop(4) == ["a"]
    assert await story.complete("a", 5, next="post") == "waiting"
    assert await story.pop(6, queue="post") == ["a"]
    assert await story.complete("a", 7, queue="post") == "complete"
    assert await story.pop(8) == ["b"]
    assert await story.fail("b", 9) == "b"
    assert await story.store.unfail(queue="mail", group="typo", now=10) == 1
    assert await story.cancel("b") == ["b"]
    assert await story.event_times("a") == [
        (0, "put"), (1, "popped"), (3, "retried"), (4, "popped"), (5, "done"), (5, "put"),
        (6, "popped"), (7, "done"),
    ]  # fmt: skip


async def test_pipelined_calls_are_executed_once_each(story: Story) -> None:
    calls = [
        story.store.put(queue="mail", jid=f"j{n}", klass="K", data="1", now=n, delay=0, tags=["x"])
        for n in range(5)
    ]
    await _forget(story)
    assert await story.store.pipeline(calls) == [f"j{n}" for n in range(5)]
    assert await story.scores("q:mail-work") == {f"j{n}": score(0, n) for n in range(5)}
    assert await story.scores("tags") == {"x": 5}


async def test_pipelined_calls_get_their_own_replies(story: Story) -> None:
    await story.running("a")
    await story.running("b")
    store = story.store
    calls: list[Call] = [
        store.heartbeat(jid="a", worker="ann", now=2),
        store.complete(jid="ghost", worker="ann", queue="mail", now=2),
        store.get(jid="b"),
        store.heartbeat(jid="b", worker="bob", now=2),
        store.length(queue="mail"),
        store.get(jid="ghost"),
    ]
    await _forget(story)
    answers: list[Any] = await story.store.pipeline(calls)
    renewed, refused, job, lost, length, nothing = answers
    assert (renewed, job["jid"], length, nothing) == (62, "b", 2, None)
    assert (type(refused), type(lost)) == (NoSuchJob, LockLost)


async def test_only_missing_scripts_are_loaded(story: Story) -> None:
    store = story.store
    await story.put("a", 0)
    await _forget(story)
    assert await story.state("a") == "waiting"
    put = store.put(queue="mail", jid="b", klass="K", data="1", now=1, delay=0)
    assert [
        await _told(answer) for answer in await story.store.pipeline([put, store.get(jid="a"), put])
    ] == ["b", "a", "b"]
    assert await story.event_times("b") == [(1, "put"), (1, "put")], "sent twice, done twice"


async def _told(answer: Any) -> Any:
    return answer["jid"] if isinstance(answer, dict) else answer
