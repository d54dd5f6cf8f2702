"""Graceful shutdown: jobs that finish in time complete, others are released."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from aioqless import Client, Job, NewJob, Settings, Worker, job
from aioqless.store import ScriptStore
from aioqless.worker.parts.listener import Listener
from tests.conftest import Until
from tests.worker.conftest import Lines, Stay, Work
from tests.worker.states import state_of


@pytest.fixture
def began() -> list[str]:
    return []


async def test_jobs_that_finish_in_time_complete_and_no_more_are_started(
    client: Client, work: Work, until: Until, lines: Lines, began: list[str]
) -> None:
    end = asyncio.Event()

    @job(klass="Slow")
    async def slow(job: Job[Any]) -> None:
        began.append(job.jid)
        await end.wait()

    await client.queue("mail").put_many(NewJob(slow, jid=jid) for jid in "abc")
    async with work(slow, concurrency=2) as worker:
        await until(lambda: len(began) == 2)
        worker.stop()
        end.set()
    assert [await state_of(client, jid) for jid in "abc"] == ["complete", "complete", "waiting"]
    assert lines.of("worker.shutdown_started", running=2) and lines.of(
        "worker.stopped", worker=worker.name
    )
    assert not worker.healthy and worker.running == []


async def test_unfinished_jobs_are_released_to_their_place_without_using_a_retry(
    client: Client, work: Work, until: Until, lines: Lines, began: list[str]
) -> None:
    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job.jid)
        job.data["tried"] = True
        await asyncio.Event().wait()

    for jid in "abc":
        await client.queue("mail").put(stay, {}, jid=jid)
    async with work(stay, concurrency=2, shutdown_timeout=0.05):
        await until(lambda: began == ["a", "b"])
    assert [job.jid for job in await client.queue("mail").peek()] == ["a", "b", "c"]
    back = await client.jobs.get("a")
    assert back and (back.state, back.remaining, back.worker, back.data) == ("waiting", 5, "", {})
    assert len(lines.of("job.released")) == 2


async def test_handler_can_clean_up_when_it_is_stopped(
    client: Client, work: Work, until: Until, began: list[str]
) -> None:
    tidied = []

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job.jid)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            tidied.append(job.jid)

    await client.queue("mail").put(stay, jid="a")
    async with work(stay, shutdown_timeout=0):
        await until(lambda: began)
    assert tidied == ["a"] and await state_of(client, "a") == "waiting"


async def test_handler_that_returns_when_stopped_completes_its_job(
    client: Client, work: Work, until: Until, began: list[str]
) -> None:
    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job.jid)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            job.data["page"] = 7

    await client.queue("mail").put(stay, {}, jid="a")
    async with work(stay, shutdown_timeout=0):
        await until(lambda: began)
    done = await client.jobs.get("a")
    assert done and (done.state, done.data) == ("complete", {"page": 7})


async def test_job_is_not_released_while_its_thread_runs(
    client: Client, work: Work, until: Until, began: list[str]
) -> None:
    end, states = threading.Event(), []

    @job(klass="Block")
    def block(job: Job[Any]) -> None:
        began.append(job.jid)
        end.wait(30)

    await client.queue("mail").put(block, jid="a")
    async with work(block, shutdown_timeout=0, kill_after=30) as worker:
        await until(lambda: began)
        worker.stop_at_once()
        await asyncio.sleep(0.05)  # nothing may happen in this time
        states.append(await state_of(client, "a"))
        end.set()
    states.append(await state_of(client, "a"))
    assert states == ["running", "complete"]


async def test_worker_exits_despite_a_hanging_thread_and_logs_its_stack(
    client: Client, work: Work, until: Until, lines: Lines, began: list[str]
) -> None:
    end = threading.Event()

    @job(klass="Block")
    def block(job: Job[Any]) -> None:
        began.append(job.jid)
        end.wait(60)

    await client.queue("mail").put(block, jid="a")
    try:
        async with (
            asyncio.timeout(50),
            work(block, shutdown_timeout=0.05, kill_after=0.05) as worker,
        ):
            await until(lambda: began)
        assert worker.abandoned == ["a"] and worker.running == []
        (left,) = lines.of("job.abandoned", jid="a")
        assert "end.wait(60)" in left["stack"]
        # the code still runs: its lock is left to expire
        assert await state_of(client, "a") == "running"
        await until(
            lambda: "aioqless a" not in {task.get_name() for task in asyncio.all_tasks()}
        )  # otherwise the host's event loop could not end
    finally:
        end.set()


async def test_job_that_waits_for_a_thread_is_released_unstarted(
    client: Client, work: Work, until: Until, began: list[str]
) -> None:
    end = threading.Event()

    @job(klass="Block")
    def block(job: Job[Any]) -> None:
        began.append(job.jid)
        end.wait(30)

    await client.queue("mail").put(block, jid="a")
    await client.queue("mail").put(block, jid="b")
    async with work(block, threads=1) as worker:
        await until(lambda: began and len(worker.running) == 2)
        worker.stop_at_once()
        await until(lambda: worker.running == ["a"])
        end.set()
    assert began == ["a"] and await state_of(client, "b") == "waiting"


async def test_stopping_at_any_moment_loses_no_job(
    client: Client, work: Work, until: Until, began: list[str]
) -> None:
    """Stop at each of many moments, also between the pop and a handler's first step."""

    @job(klass="Step")
    async def step(job: Job[Any]) -> None:
        await asyncio.sleep(0)
        began.append(job.jid)

    for moment in range(40):
        jid = await client.queue("mail").put(step)
        async with work(step, shutdown_timeout=0) as worker:
            for _ in range(moment * 3):
                await asyncio.sleep(0)
            if moment % 2:
                worker.stop_at_once()
        assert await state_of(client, jid) == ("complete" if jid in began else "waiting")
        await client.jobs.cancel(jid)


# Embedded in a host


async def test_host_continues_after_a_part_crashed_and_gets_the_error_on_exit(
    client: Client, work: Work, until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    with pytest.raises(ExceptionGroup) as crashed:
        async with work() as worker:
            assert worker.healthy

            def crash(*_: object) -> None:
                raise ZeroDivisionError("the part broke")

            await until(lambda: lines.of("worker.started"))
            monkeypatch.setattr(Listener, "catch_up", crash)
            await client.redis.client_kill_filter(_type="pubsub")
            await until(lambda: not worker.healthy)
            left.append("the host was not cancelled")
    assert left and crashed.group_contains(ZeroDivisionError)
    assert "the part broke" in lines.of("worker.crashed")[0]["error"]


async def test_crash_of_the_outcome_writer_ends_the_worker_and_leaves_no_task(
    client: Client, work: Work, until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(asyncio.all_tasks())

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    with pytest.raises(ExceptionGroup):
        async with work(greet) as worker:

            async def crash(*_: object) -> None:
                raise ZeroDivisionError

            monkeypatch.setattr(ScriptStore, "pipeline", crash)
            await client.queue("mail").put(greet, jid="a")
            await until(lambda: not worker.healthy)
    assert lines.of("job.outcome_dropped", jid="a", outcome="completed")
    assert await state_of(client, "a") == "running"  # until its lock expires
    await until(lambda: len(asyncio.all_tasks()) == before)


async def test_worker_run_can_be_canceled(
    client: Client, until: Until, lines: Lines, stay: Stay
) -> None:
    await client.queue("mail").put(stay.handler, jid="a")
    settings = Settings(queues=("mail",))
    task = asyncio.create_task(Worker(client, stay.handler, settings=settings).run())
    await until(lambda: stay.began)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await state_of(client, "a") == "waiting"


async def test_cancellation_at_the_moment_of_a_wakeup_ends_the_worker(
    client: Client, until: Until, began: list[Any]
) -> None:
    for _ in range(3):
        worker = Worker(
            client, job(klass="Greet")(began.append), settings=Settings(queues=("mail",), poll=30)
        )
        task = asyncio.create_task(worker.run())
        await until(lambda: worker.idle)  # noqa: B023  # awaited
        worker.subscribe("mail")
        worker._consumer._lost_locks._news.set()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=30)
        assert task.cancelled()
