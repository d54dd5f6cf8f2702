"""emit, output: what the runs of a job append to a stream, and what readers get."""

from typing import Any

from redis.asyncio import Redis

from aioqless.errors import LockLost, WrongState
from tests.lua.story import Story


async def emit(
    story: Story, *values: int, start: int = 0, fence: str = "1", worker: str = "ann", **more: Any
) -> Any:
    text = str(list(values)).replace(" ", "")
    row = {"jid": "a", "fence": fence, "start": start, "count": len(values), "values": text}
    [answer] = await story.call("emit", worker=worker, now=5, batch=[{**row, "ttl": 60, **more}])
    return answer


async def read(story: Story, position: str | None = None) -> list[str]:
    found: list[str] = await story.call("output", jid="a", position=position)
    return found


async def test_entry_is_named_by_the_run_and_the_number_of_its_last_value(story: Story) -> None:
    await story.running("a")
    assert await emit(story, 1, 2) == await emit(story, 3, start=2) == "ok"
    assert await read(story) == ["running", "1-2", "[1,2]", "1-3", "[3]"]
    assert await read(story, "1-2") == ["running", "1-3", "[3]"]
    assert await read(story, "1-1") == ["running", "1-2", "[1,2]", "1-3", "[3]"]


async def test_unknown_job_has_no_state_and_no_output(story: Story) -> None:
    assert await read(story) == [""]


async def test_values_that_are_sent_again_are_not_appended_again(story: Story) -> None:
    await story.running("a")
    for _ in range(2):
        await emit(story, 1, 2)
        await emit(story, 3, start=2)
    assert await read(story) == ["running", "1-2", "[1,2]", "1-3", "[3]"]


async def test_dropped_values_leave_a_gap_in_the_numbers(story: Story) -> None:
    await story.running("a")
    await emit(story, 1, 2)
    await emit(story, 9, start=8)
    assert await read(story) == ["running", "1-2", "[1,2]", "1-9", "[9]"]


async def test_new_run_begins_the_output_anew(story: Story) -> None:
    await story.running("a")
    await emit(story, 1, 2)
    await story.call("timeout", jids=["a"], now=6)
    await story.pop(7)
    await emit(story, 3, fence="2")
    assert await read(story) == ["running", "2-1", "[3]"]


async def test_new_run_that_keeps_the_output_continues_it(story: Story) -> None:
    await story.running("a")
    await emit(story, 1, 2, keep="1")
    await story.call("timeout", jids=["a"], now=6)
    await story.pop(7)
    await emit(story, 3, 4, fence="2", keep="1")
    await emit(story, 3, 4, fence="2", keep="1")
    await emit(story, 5, fence="2", start=2, keep="1")
    values = ["1-2", "[1,2]", "1-4", "[3,4]", "1-5", "[5]"]
    assert await read(story) == ["running", *values]


async def test_run_that_lost_its_lock_appends_nothing(story: Story) -> None:
    await story.running("a")
    assert isinstance(await emit(story, 1, fence="99"), LockLost)
    assert isinstance(await emit(story, 1, worker="bob"), LockLost)
    await story.call("complete", jid="a", worker="ann", queue="mail", now=6)
    assert isinstance(await emit(story, 1), WrongState)
    assert await read(story) == ["complete"]


async def test_oldest_entries_go_when_there_are_too_many_bytes(story: Story) -> None:
    await story.running("a")
    text = f'["{"x" * 1_000_000}"]'
    for number in range(12):
        row = {"jid": "a", "fence": "1", "start": number, "count": 1, "values": text, "ttl": 60}
        await story.call("emit", worker="ann", now=5, batch=[row])
    names = (await read(story))[1::2]
    assert names[-1] == "1-12"
    assert 5 <= len(names) <= 8


async def test_output_expires_after_its_last_entry_and_goes_with_the_job(
    story: Story, redis: Redis, namespace: str
) -> None:
    await story.running("a")
    await emit(story, 1)
    key = f"{namespace}:x:output:a"
    assert 50 < await redis.ttl(key) <= 60
    await story.call("cancel", jids=["a"])
    assert not await redis.exists(key)


async def test_latest_entries_are_read_in_their_order(story: Story) -> None:
    await story.running("a")
    for number in range(5):
        await emit(story, number, start=number)
    found = await story.call("output", jid="a", latest=2)
    assert found == ["running", "1-4", "[3]", "1-5", "[4]"]
