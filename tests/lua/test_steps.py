"""step, steps: what a run stores for later runs; and when it is deleted."""

from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from tests.lua.story import Story


async def store(story: Story, name: str, at: float, result: str = "1", **more: Any) -> None:
    given = {"jid": "a", "worker": "ann", "kind": "step", **more}
    await story.call("step", now=at, name=name, result=result, **given)


async def read(story: Story, jid: str = "a") -> dict[str, str]:
    found = await story.call("steps", jid=jid)
    return {k: v for k, v in zip(found[::2], found[1::2], strict=True) if not k.startswith(".")}


async def has_keys(story: Story) -> bool:
    return bool(await story.items("x:steps:a") or await story.reviewed("steps", "a"))


@pytest.mark.parametrize("end", ["retry", "release", "fail", "unfail", "timeout", "advance"])
async def test_steps_are_kept_until_the_job_has_ended(story: Story, end: str) -> None:
    await story.running("a")
    await store(story, "plan", 2)
    match end:
        case "retry":
            await story.retry("a", 3)
        case "release":
            await story.release("a", 3, delay=10)
        case "fail":
            await story.fail("a", 3)
        case "unfail":
            await story.fail("a", 3)
            await story.store.unfail(queue="mail", group="typo", now=4)
        case "timeout":
            await story.timeout("a", at=3)
        case "advance":
            await story.complete("a", 3, next="post", durable="1")
    assert await read(story) == {"step:plan": "1 2.000 1 1"}


@pytest.mark.parametrize("end", ["complete", "complete_many", "cancel", "put"])
async def test_steps_are_deleted_with_the_end_of_the_job(story: Story, end: str) -> None:
    await story.running("a")
    await store(story, "plan", 2)
    match end:
        case "complete":
            await story.complete("a", 3, durable="1")
        case "complete_many":
            row: Any = {"jid": "a", "queue": "mail", "durable": "1"}
            await story.store.complete_many(worker="ann", now=3, batch=[row])
        case "cancel":
            await story.cancel("a")
        case "put":
            await story.put("a", 3)
    assert not await has_keys(story)
    assert await story.call("steps", jid="a") == []


async def test_steps_of_an_earlier_job_of_the_jid_are_not_seen(story: Story) -> None:
    await story.running("a")
    await store(story, "plan", 2)
    await story.redis.delete(f"{story.namespace}:j:a")  # as another client deletes an old job
    await story.running("a", 3, 4)
    assert await read(story) == {}
    await store(story, "write", 5)
    assert await read(story) == {"step:write": "1 5.000 1 1"}


async def test_ticks_delete_steps_of_jobs_that_other_clients_ended(story: Story) -> None:
    await story.running("a")
    await store(story, "plan", 2)
    await story.complete("a", 3)  # as other clients do
    await story.tick(21)
    assert await has_keys(story)
    await story.tick(23)
    assert not await has_keys(story)


async def test_ticks_leave_steps_that_are_needed(story: Story) -> None:
    await story.running("a")
    await store(story, "plan", 2)
    await story.tick(23)
    assert list(await read(story)) == ["step:plan"]
    assert await story.reviewed("steps", "a") == pytest.approx(43, abs=0.1)


async def test_many_jobs_with_steps_are_reviewed_less_often(story: Story) -> None:
    await story.running("a")
    await store(story, "plan", 2)
    for start in range(0, 130_000, 10_000):
        notes = {f"note {number}": 1e9 for number in range(start, start + 10_000)}
        await story.redis.zadd(story.key("x:agenda"), notes)
        if start == 0:
            await story.tick(30)
            next_review = await story.reviewed("steps", "a")
            assert next_review == pytest.approx(30 + 20 + 10_000 / 200, abs=0.1)
    await story.tick(200)
    assert await story.reviewed("steps", "a") == 200 + 20 + 600


@pytest.mark.parametrize(("name", "left"), [("two", ["one"]), ("one", []), ("rows", ["one"])])
async def test_retry_from_a_step_forgets_it_and_later_ones(
    story: Story, name: str, left: list[str]
) -> None:
    await story.running("a")
    await store(story, "one", 2)
    await store(story, "rows", 3, kind="cursor")
    await store(story, "two", 4)
    await store(story, "rows", 5, kind="cursor")
    await story.fail("a", 6)
    expected = [f"step:{each}" for each in left] + (["cursor:rows"] if name == "two" else [])
    await story.store.revive_job(jid="a", now=7, from_step=name)
    assert [*await read(story)] == expected
    assert await story.pop(8) == ["a"]
    await store(story, "two", 9)
    assert (await read(story))["step:two"].startswith("4 ")


async def test_retry_from_an_unknown_step_is_refused(story: Story) -> None:
    await story.running("a")
    await store(story, "one", 2)
    await story.fail("a", 3)
    async with story.refused(InvalidArgument, argument="from_step"):
        await story.store.revive_job(jid="a", now=4, from_step="two")


async def test_number_of_steps_is_limited(story: Story) -> None:
    await story.configure(max_steps=2)
    await story.running("a")
    await store(story, "one", 2)
    await store(story, "two", 3)
    async with story.refused(InvalidArgument, argument="name"):
        await store(story, "three", 4)
    assert len(await read(story)) == 2


async def test_size_of_steps_is_limited(story: Story) -> None:
    await story.configure(max_steps_size=99)
    await story.running("a")
    await store(story, "rows", 2, '"' + "x" * 60 + '"', kind="cursor")
    await store(story, "rows", 3, '"' + "y" * 70 + '"', kind="cursor")
    async with story.refused(InvalidArgument, argument="name"):
        await store(story, "two", 4, "12345678")
    await store(story, "rows", 5, "0", kind="cursor")
    await store(story, "two", 6, "12345678")
