"""Performing a handler without Redis."""

from __future__ import annotations

import os
from typing import Any

import pytest

from aioqless import AioqlessError, Fail, Inject, InvalidData, Job, Next, Retry, Snooze, job
from aioqless.client.put import NewJob
from aioqless.handlers.retry_policy import RetryPolicy, fixed
from aioqless.testing import perform
from aioqless.worker.outcome import Completed, Failed, Released, Retried


class Pool:
    name = "fake"


@job(klass="Charge", retries=2)
async def charge(job: Job[Any], invoice: int, pool: Pool = Inject) -> Next | None:
    match invoice:
        case 1:
            job.data["receipt"] = pool.name
            await job.heartbeat()
            await job.log("paid", by=pool.name)
            return Next("mail", delay=5)
        case 2:
            raise Retry(30)
        case 3:
            raise Fail("refused", "no money")
        case 4:
            await job.complete()
        case 5:
            await job.move("elsewhere")
    raise ConnectionError("bank closed")


async def test_outcome_is_that_of_a_worker() -> None:
    ended = await perform(charge.data(invoice=1), resources={Pool: Pool()})
    assert ended.outcome == Completed(Next("mail", delay=5), None)
    assert ended.job.data == {"invoice": 1, "receipt": "fake"}
    assert [command for command, _ in ended.commands] == ["heartbeat", "log"]


@pytest.mark.parametrize(
    ("invoice", "outcome"),
    [(2, Retried(30)), (3, Failed("refused", "no money")), (4, None)],
)
async def test_outcome_raised_by_the_handler_is_returned(invoice: int, outcome: object) -> None:
    assert (
        await perform(charge.data(invoice=invoice), resources={Pool: Pool()})
    ).outcome == outcome


async def test_error_fails_the_job_or_is_retried_by_the_policy() -> None:
    ended = await perform(charge.data(invoice=6), resources={Pool: Pool()}, queue="bank")
    assert isinstance(ended.outcome, Failed) and ended.outcome.group == "bank-ConnectionError"
    assert isinstance(ended.error, ConnectionError)
    policy = RetryPolicy(ConnectionError, backoff=fixed(7))
    again = (await perform(charge.data(invoice=6), resources={Pool: Pool()}, retry=policy)).outcome
    assert isinstance(again, Retried) and again.delay == 7


async def test_plain_function_is_performed() -> None:
    @job
    def double(job: Job[int]) -> int:
        return job.data * 2

    assert (await perform(double.data(21))).result == 42


async def test_calls_that_need_redis_raise() -> None:
    ended = await perform(charge.data(invoice=5), resources={Pool: Pool()})
    assert isinstance(ended.error, AioqlessError) and "has no Redis to requeue on" in str(
        ended.error
    )


async def test_missing_resource_is_refused() -> None:
    with pytest.raises(AioqlessError, match=r"resources={Pool: ...}"):
        await perform(charge.data(invoice=1))
    with pytest.raises(InvalidData):
        await perform(charge.data(invoice="one"), resources={Pool: Pool()})  # type: ignore[arg-type]


async def test_process_handler_runs_in_the_process_of_the_test() -> None:
    @job(executor="process")
    def tell(job: Job[Any]) -> int:
        return os.getpid()

    assert (await perform(tell.data())).result == os.getpid()


async def test_result_and_progress_of_a_handler_are_returned() -> None:
    @job(result_ttl=60)
    async def count(job: Job, text: str) -> int:
        job.progress(0.5, "halfway")
        return len(text)

    done = await perform(count.data(text="abc"))
    assert done.outcome == Completed(result=b"60 3")
    assert done.commands == [("progress", {"share": 0.5, "message": "halfway"})]


@pytest.mark.parametrize("end", [Retry(30), Snooze(30)])
async def test_changed_data_is_part_of_the_outcome_of_retry_and_snooze(end: Exception) -> None:
    @job(klass="Page")
    async def page(job: Job[Any]) -> None:
        job.data["page"] += 1
        raise end

    done = await perform(NewJob(page, {"page": 1}))
    assert isinstance(done.outcome, Retried | Released)
    assert (done.outcome.data, done.job.data) == (b'{"page":2}', {"page": 2})
