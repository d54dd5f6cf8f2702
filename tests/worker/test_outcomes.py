"""Outcomes of runs, and how they are stored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import Client, Job, Next, Retry, job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work
from tests.worker.states import after, state_of

# Completing


async def test_outcome_is_stored_although_the_handler_canceled_its_own_task_last(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Last")
    async def last(job: Job[Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async with work(last, concurrency=1):
        jids = [await client.queue("mail").put(last) for _ in range(3)]
        for jid in jids:
            await after(client, until, jid, "complete")


# Next queue


async def test_next_moves_the_job_to_another_queue_with_the_same_jid(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Order")
    async def order(job: Job[Any]) -> Next | None:
        if job.queue == "mail":
            job.data["stage"] = 2
            return Next("billing")
        return None

    jid = await client.queue("mail").put(order, {"stage": 1})
    async with work(order, queues=("mail", "billing")):
        done = await after(client, until, jid, "complete")
    assert done.data == {"stage": 2}
    assert [stage["q"] for stage in done.history] == ["mail", "billing"]
    assert lines.of("job.advanced", jid=jid, queue="mail", to="billing", state="waiting")


async def test_retry_runs_the_job_again_and_uses_a_retry(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    remaining = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        remaining.append(job.remaining)
        if len(remaining) < 3:
            raise Retry("come back", delay=0, group="busy")

    jid = await client.queue("mail").put(greet, retries=2)
    async with work(greet):
        await after(client, until, jid, "complete")
    assert remaining == [2, 1, 0]
    assert [line["remaining"] for line in lines.of("job.retried", jid=jid)] == [1, 0]


# Outcomes set by the handler itself


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("complete", "complete"),
        ("fail", "failed"),
        ("retry", "scheduled"),
        ("release", "scheduled"),
    ],
)
async def test_job_ended_by_its_handler_is_left_unchanged(
    client: Client, work: Work, until: Until, lines: Lines, verb: str, state: str
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        match verb:
            case "complete":
                await job.complete()
            case "fail":
                await job.fail("no such word", group="typo")
            case "retry":
                await job.retry(delay=600)
            case _:
                await job.release(600)

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await until(lambda: lines.of("job.settled", jid=jid, error=None))
        assert await state_of(client, jid) == state
    assert (
        not lines.of("job.completed")
        and not lines.of("job.lock_lost")
        and not lines.of("job.refused")
    )


async def test_handler_that_completed_its_job_may_run_longer_than_the_lock(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    await client.config.set("heartbeat", 0.3)
    tidied = asyncio.Event()

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        await job.complete()
        await asyncio.sleep(0.7)
        tidied.set()

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await until(lambda: lines.of("job.settled", jid=jid))
    assert tidied.is_set()


async def test_error_after_a_handler_ended_its_job_is_logged(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        await job.complete()
        raise ValueError("too late")

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await until(lambda: lines.of("job.settled", jid=jid, error="ValueError('too late')"))


async def test_outcome_whose_message_is_no_text_is_stored_with_its_text(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Odd")
    async def odd(job: Job[Any]) -> None:
        end = Retry(delay=0, group="odd")
        end.message = 3.5  # type: ignore[assignment]
        raise end

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    jids = [await client.queue("mail").put(each) for each in (odd, greet, odd, greet)]
    async with work(odd, greet) as worker:
        for jid, state in zip(jids, ["failed", "complete"] * 2, strict=True):
            await after(client, until, jid, state)
        failed = await client.jobs.get(jids[0])
        assert failed.failure and failed.failure.message == "3.5"
        assert worker.healthy
