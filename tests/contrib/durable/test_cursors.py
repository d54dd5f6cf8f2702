"""Cursors: a position that the next run continues from."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import Client, InvalidData, Job, LockLost, Settings, Worker, job
from aioqless.client.job import JobState
from aioqless.contrib.durable import cursor
from aioqless.handlers.retry_policy import fixed
from aioqless.testing import perform
from tests.conftest import Until, existing_job


def worker(client: Client, *handlers: Any, **settings: Any) -> Worker:
    return Worker(client, *handlers, settings=Settings(queues=["default"], **settings))


async def test_next_run_continues_behind_the_last_item(client: Client) -> None:
    done: list[object] = []

    @job(retry_on=ConnectionError, backoff=fixed(0))
    async def export(job: Job) -> None:
        async with job.cursor("rows", int) as rows:
            done.append(rows.value)
            for number in range(rows.value or 0, 10):
                if number == 5 and done.count(5) == 0:
                    raise ConnectionError
                done.append(number)
                rows.advance(number + 1)

    jid = await client.queue("default").put(export)
    async with worker(client, export):
        assert (await client.jobs.wait(jid, 30)).state == JobState.COMPLETE
    assert done == [None, *range(5), 5, *range(5, 10)]  # the value at the start of each run


async def test_position_is_stored_while_the_block_runs(
    client: Client, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "PAUSE", 0.01)
    go_on = asyncio.Event()

    @job
    async def export(job: Job) -> None:
        async with job.cursor("rows", int) as rows:
            rows.advance(1)
            await go_on.wait()
            rows.advance(2)
            await asyncio.Event().wait()

    async def position() -> Any:
        return [step.value for step in await client.jobs.steps(jid)]

    async def is_stored(value: int) -> bool:
        return bool(await position() == [value])

    jid = await client.queue("default").put(export)
    async with worker(client, export, shutdown_timeout=0):
        await until(lambda: is_stored(1))
        go_on.set()
        await until(lambda: is_stored(2))


async def test_positions_are_stored_at_most_once_a_second() -> None:
    @job
    async def export(job: Job) -> None:
        async with job.cursor("rows", int) as rows:
            for number in range(1000):
                rows.advance(number)
                await asyncio.sleep(0)

    stored = [given["result"] for name, given in (await perform(export.data())).commands]
    assert len(stored) <= 3
    assert stored[-1] == "999"


async def test_draining_worker_ends_the_run_at_the_next_advance(
    client: Client, until: Until
) -> None:
    began, go_on, ends = asyncio.Event(), asyncio.Event(), []

    @job
    async def export(job: Job) -> None:
        async with job.cursor("rows", int) as rows:
            rows.advance(1)
            began.set()
            await go_on.wait()
            try:
                rows.advance(2)
            except Exception:
                ends.append("caught")
            finally:
                ends.append("finally")

    jid = await client.queue("default").put(export)
    async with worker(client, export) as running:
        await began.wait()
        running.stop()
        go_on.set()
    released = await existing_job(client, jid)
    assert (released.state, released.remaining) == (JobState.WAITING, released.retries)
    assert released.failure is None
    assert [step.value for step in await client.jobs.steps(jid)] == [2]
    assert ends == ["finally"]


async def test_exception_group_of_ended_runs_is_no_failure(client: Client) -> None:
    began = asyncio.Event()

    @job
    async def export(job: Job) -> None:
        async def one(name: str) -> None:
            async with job.cursor(name, int) as rows:
                for number in range(1_000_000):
                    rows.advance(number)
                    began.set()
                    await asyncio.sleep(0.001)

        async with asyncio.TaskGroup() as group:
            group.create_task(one("a"))
            group.create_task(one("b"))

    jid = await client.queue("default").put(export)
    async with worker(client, export) as running:
        await began.wait()
        running.stop()
    released = await existing_job(client, jid)
    assert (released.state, released.failure) == (JobState.WAITING, None)


async def test_plain_handler_writes_with(client: Client) -> None:
    @job(result_ttl=60)
    def archive(job: Job) -> list[int | None]:
        with job.cursor("pages", int) as pages:
            before = pages.value
            for number in range(5):
                pages.advance(number)
            return [before, pages.value]

    done = await perform(archive.data(), steps={"other": 1})
    assert done.result == [None, 4]
    assert done.commands[-1] == ("step", {"kind": "cursor", "name": "pages", "result": "4"})


async def test_coroutine_that_writes_with_is_told_so() -> None:
    @job
    async def handler(job: Job) -> None:
        with job.cursor("pages", int):
            pass

    assert "async with" in str((await perform(handler.data())).error)


async def test_position_of_another_type_is_refused_and_not_stored() -> None:
    @job
    async def handler(job: Job) -> None:
        async with job.cursor("rows", int) as rows:
            rows.advance(1)
            rows.advance("two")  # type: ignore[arg-type]

    ended = await perform(handler.data())
    assert isinstance(ended.error, InvalidData)
    assert "cursor 'rows'" in str(ended.error)
    assert ended.commands[-1][1]["result"] == "1"


async def test_lost_lock_ends_the_run_at_a_later_advance(
    client: Client, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "PAUSE", 0.0)
    began = asyncio.Event()
    errors: list[BaseException] = []

    @job
    async def export(job: Job) -> None:
        try:
            async with job.cursor("rows", int) as rows:
                for number in range(1_000_000):
                    rows.advance(number)
                    began.set()
                    try:
                        await asyncio.sleep(0.001)
                    except asyncio.CancelledError:
                        continue  # code that does not stop
        except (LockLost, asyncio.CancelledError) as error:  # whichever comes first
            errors.append(error)
            raise

    jid = await client.queue("default").put(export)
    async with worker(client, export):
        await began.wait()
        await client.jobs.cancel(jid)
        await until(lambda: errors)
    assert await client.jobs.steps(jid) == []
