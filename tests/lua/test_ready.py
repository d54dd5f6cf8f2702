"""ready: what an idle worker asks in place of a pop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.lua.story import Story

QUEUES = [f"queue-{n}" for n in range(100)]


async def ask(story: Story, at: float, *queues: str) -> str:
    return await story.store.ready(now=at, queues=queues or ["mail"])


async def put_job(story: Story) -> None:
    await story.put("a", 10)


async def end_delay(story: Story) -> None:
    await story.put("a", 0, delay=10)


async def end_lock(story: Story) -> None:
    await story.configure(heartbeat=10)
    await story.running("a")


async def end_interval(story: Story) -> None:
    await story.recur("r", 0, interval=60, offset=10)


async def note(story: Story) -> None:
    await story.change("ZADD", "x:agenda", 10, '{"kind":"orphan","about":"a"}')


@pytest.mark.parametrize("make", [put_job, end_delay, end_lock, end_interval, note])
async def test_pop_may_bring_jobs_once_something_waits_or_is_due(
    story: Story, make: Callable[[Story], Awaitable[None]]
) -> None:
    assert await ask(story, 10) == ""
    await make(story)
    assert float(await ask(story, 11)) <= 11
    if make is not put_job:
        assert 4 < float(await ask(story, 4)) <= 11


async def test_jobs_of_a_paused_or_full_queue_are_not_ready(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 0.5)
    await story.configure(mail_max_concurrency=1)
    assert await ask(story, 1) == "0"
    assert await story.pop(1) == ["a"]
    assert float(await ask(story, 1)) == 61, "when the lock of the first expires"
    await story.store.pause(queues=["mail"])
    await story.complete("a", 2)
    assert float(await ask(story, 3)) == 86_400, "when old statistics are looked for"


@pytest.mark.parametrize("used", [0, 1, 3, 100])
async def test_job_of_any_of_many_queues_is_found(story: Story, used: int) -> None:
    for n in range(used):
        await story.put(f"a{n}", 0, queue=QUEUES[n * 37 % 100], delay=50 + n)
    assert await ask(story, 10, *QUEUES) == ("50" if used else "")
    assert await ask(story, 50, *QUEUES) == ("0" if used else "")


async def test_empty_queues_cost_no_commands_however_many_they_are(story: Story) -> None:
    async def count(queues: list[str]) -> int:
        async with story.commands_of_scripts() as commands:
            await ask(story, 10, *queues)
        return len(commands)

    assert await count(QUEUES) == await count(["mail"]) == 2
