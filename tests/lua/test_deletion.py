"""Deleted jobs leave no keys or entries, whatever they had and however they were deleted."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from aioqless.contrib.human_tasks.generated_commands import HumanTasksCommands
from aioqless.store import PutFlowRow
from tests.lua.story import Story

Step: TypeAlias = Callable[[Story], Awaitable[object]]

# Keys that do not belong to a job: they stay, are bounded, or keep a record on purpose.
NOT_OF_A_JOB = (
    "queues",
    "workers",
    "config",
    "s:",
    "x:fence",
    "x:on-failure",
    "x:old-statistics",
    "x:retention-rules",
    "x:archive",
    "tracked",
)
NARROW = {"limits": [{"key": "narrow", "limit": 1}]}
UNIQUE = {
    "unique": "one",
    "until": "done",
    "limits": [{"key": "narrow", "limit": 1, "rate": [9, 1000]}],
}
RICH = {
    "constraints": json.dumps(UNIQUE),
    "tags": ["x", "y"],
    "priority": -3,
    "context": '{"trace": "t"}',
    "expires_in": 9000,
    "retries": 2,
}
POPPED = 10


async def put(story: Story, jid: str = "a", **more: Any) -> None:
    await story.put(jid, 0, **{**RICH, **more})
    await story.track(jid, 0)


async def waits(story: Story) -> None:
    await put(story)


async def is_scheduled(story: Story) -> None:
    await put(story, delay=1000)


async def depends(story: Story) -> None:
    await story.put("other", 0)
    await put(story, depends=["other"])


async def is_limited(story: Story) -> None:
    """Hold back the job: another job with its key runs first."""
    await story.put("first", 0, priority=-9, constraints=json.dumps(NARROW))
    await put(story)
    assert await story.pop(POPPED, count=2) == ["first"] and await story.state("a") == "scheduled"


async def runs(story: Story) -> None:
    await put(story)
    assert await story.pop(POPPED) == ["a"]
    await story.heartbeat("a", POPPED, progress=0.5, message="half")


async def is_in_its_grace(story: Story) -> None:
    await runs(story)
    assert await story.pop(POPPED + 100, worker="zoe") == []


async def is_stalled(story: Story) -> None:
    await runs(story)
    await story.timeout("a", at=POPPED)


async def waits_for_its_retry(story: Story) -> None:
    await runs(story)
    await story.retry("a", POPPED, delay=100, group="typo", message="again")


async def is_reserved(story: Story) -> None:
    await put(story)
    answer = await HumanTasksCommands(story.store).reserve(
        queue="mail", person="ann", worker="ann@2", limit=300, now=POPPED
    )
    assert answer["job"]["jid"] == "a"


async def was_skipped_by_a_person(story: Story) -> None:
    await is_reserved(story)
    await HumanTasksCommands(story.store).skip(jid="a", person="ann", worker="ann@2", now=POPPED)


async def was_handed_over(story: Story) -> None:
    await is_reserved(story)
    await HumanTasksCommands(story.store).hand_over(
        jid="a", worker="ann@2", to="bob", limit=60, now=POPPED
    )


async def failed(story: Story) -> None:
    await runs(story)
    await story.fail("a", POPPED)


async def failed_with_dependent(story: Story) -> None:
    """Fail a job with a dependent that is canceled then."""
    await put(story)
    row: PutFlowRow = {
        "queue": "mail",
        "jid": "b",
        "klass": "Greet",
        "data": "{}",
        "delay": 0,
        "depends": '["a"]',
        "if_dependency_fails": "cancel",
    }
    await story.store.put_flow(now=0, batch=[row])
    assert await story.pop(POPPED) == ["a"]
    await story.fail("a", POPPED)
    assert await story.get("b") is None


async def failed_and_runs_again(story: Story) -> None:
    await failed(story)
    await story.store.revive_job(jid="a", now=POPPED)
    assert await story.pop(POPPED) == ["a"]


async def was_put_again(story: Story) -> None:
    await completed(story)
    await put(story)


async def completed(story: Story) -> None:
    await runs(story)
    await story.complete("a", POPPED, result="500 [1]")


ALIVE = (
    *(
        waits,
        is_scheduled,
        depends,
        is_limited,
        runs,
        is_in_its_grace,
        is_stalled,
        waits_for_its_retry,
    ),
    *(
        is_reserved,
        was_skipped_by_a_person,
        was_handed_over,
        failed,
        failed_with_dependent,
        failed_and_runs_again,
    ),
    was_put_again,
)


async def left(story: Story) -> dict[str, Any]:
    """Return the keys of jobs, except those that expire."""
    keys = {
        key: contents
        for key, contents in (await story.all_keys()).items()
        if not key.startswith(NOT_OF_A_JOB)
    }
    if not await story.noted():  # but for reviews
        keys.pop("x:agenda", None)
    return {key: keys[key] for key in keys if await story.ask("TTL", story.key(key)) == -1}


@pytest.mark.parametrize("archive", ["off", "on"])
@pytest.mark.parametrize("state", ALIVE, ids=lambda state: state.__name__)
async def test_canceled_job_leaves_nothing(story: Story, state: Step, archive: str) -> None:
    await story.configure(archive=archive, failed_history=10_000)
    await state(story)
    await story.store.log(jid="a", message="note", now=99)
    assert {"j:a", "j:a-history", "tags", "t:x"} <= (await left(story)).keys()
    others = [jid for jid in ("first", "other") if await story.get(jid)]
    assert await story.cancel("a", *others) == ["a", *others]
    assert await left(story) == {}
    assert not await story.exists("x:result:a")
    assert (await story.store.check(now=POPPED, budget=10_000))["found"] == []


@pytest.mark.parametrize("archive", ["off", "on"])
async def test_pruned_job_leaves_only_a_result_with_a_longer_retention(
    story: Story, archive: str
) -> None:
    await story.configure(archive=archive, jobs_history=100)
    await completed(story)
    assert {"j:a", "completed"} <= (await left(story)).keys()
    await story.completed("b", 200, 201, 202)
    await story.configure(jobs_history=-1)
    await story.completed("c", 300, 301, 302)
    assert await left(story) == {}
    assert await story.exists("x:result:a")


@pytest.mark.parametrize("archive", ["off", "on"])
async def test_pruned_failed_job_leaves_nothing(story: Story, archive: str) -> None:
    await story.configure(archive=archive, failed_history=100)
    await failed(story)
    assert {"j:a", "f:typo", "failures", "x:agenda"} <= (await left(story)).keys()
    await story.failed("b", 200, 201, 202)
    await story.cancel("b")
    assert await left(story) == {}


@pytest.mark.parametrize("kind", ["interval", "cron"])
async def test_canceled_recurring_job_leaves_nothing_even_if_paused(
    story: Story, kind: str
) -> None:
    made = {"tags": ["x"], "constraints": json.dumps(NARROW)}
    await (
        story.recur("r", 0, **made) if kind == "interval" else story.cron("r", 0, next=60, **made)  # type: ignore[arg-type]
    )
    await story.store.recur_pause(jid="r", now=1)
    assert "x:paused-recurring" in await left(story)
    await story.store.recur_off(jid="r")
    assert await left(story) == {}
