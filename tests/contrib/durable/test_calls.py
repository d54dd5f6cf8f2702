"""Calls: other jobs as functions."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from aioqless import Client, Fail, Job, JobFailed, Settings, Worker, job
from aioqless.client.job import JobState
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.human_tasks import Person, TaskQueue
from aioqless.testing import RunReleased, perform, run_jobs
from tests.conftest import Until, existing_job


@dataclasses.dataclass
class Receipt:
    order: int
    paid: bool = True


@pytest.fixture
def done() -> list[str]:
    return []


def worker(client: Client, *handlers: Any, **settings: Any) -> Worker:
    given: dict[str, Any] = {"queues": ["default", "pay"], "park_after": 0, "poll": 0.1, **settings}
    return Worker(client, *handlers, settings=Settings(**given))


@job(queue="pay")
async def charge(job: Job, order: int) -> Receipt:
    if order < 0:
        raise Fail("no such order", group="refused")
    return Receipt(order)


async def test_call_returns_the_result_in_its_type_and_holds_no_slot(
    client: Client, done: list[str]
) -> None:
    @job(result_ttl=60)
    async def order(job: Job, number: int) -> Any:
        receipt = await job.call("charge", charge.data(order=number))
        done.append(repr(receipt))
        return receipt.paid

    jid = await client.put(order.data(number=7))
    async with worker(client, order, charge, concurrency=1):
        assert await client.jobs.result(jid, timeout=30) is True
    assert done == [repr(Receipt(7))]
    assert (await existing_job(client, f"{jid}-1")).state == JobState.COMPLETE


async def test_failed_child_is_an_error_that_compensations_can_catch(
    client: Client, done: list[str]
) -> None:
    @job(queue="pay")
    async def refund(job: Job, order: int) -> None:
        done.append(f"refund {order}")

    @job
    async def order(job: Job) -> None:
        receipt = await job.call("charge", charge.data(order=7))
        try:
            await job.call("reserve", charge.data(order=-1))
        except JobFailed as failed:
            done.append(f"{failed.group}: {failed.message}")
            await job.call("refund", refund.data(order=receipt.order))
            raise

    jid = await client.put(order.data())
    await run_jobs(client, order, charge, refund)
    ended = await client.jobs.get(jid)
    assert ended is not None and ended.failure is not None
    assert "JobFailed" in ended.failure.message
    assert done == ["refused: no such order", "refund 7", "refused: no such order"]


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.long)])
async def test_many_children(client: Client, count: int) -> None:
    @job(queue="pay")
    async def double(job: Job, number: int) -> int:
        return 2 * number

    @job(result_ttl=60)
    async def parent(job: Job) -> int:
        calls = (job.call(f"n{n}", double.data(number=n)) for n in range(count))
        return sum(await asyncio.gather(*calls))

    jid = await client.put(parent.data())
    async with worker(client, parent, double, park_after=1):
        assert await client.jobs.result(jid, timeout=120) == count * (count - 1)


async def test_canceled_child_is_a_failure(client: Client, until: Until) -> None:
    @job(result_ttl=60)
    async def parent(job: Job) -> str:
        try:
            await job.call("charge", charge.data(order=1))
        except JobFailed as failed:
            return failed.group
        return ""

    jid = await client.put(parent.data())
    async with worker(client, parent, queues=["default"]):
        await until(lambda: client.jobs.get(f"{jid}-1"))
        await client.jobs.cancel(f"{jid}-1")
        assert await client.jobs.result(jid, timeout=30) == "canceled"


async def test_results_are_encrypted(redis_url: str, namespace: str) -> None:
    @job(result_ttl=60)
    async def parent(job: Job) -> int:
        return (await job.call("charge", charge.data(order=77_000_001))).order

    codec = Encryption(Encryption.new_key())
    async with Client(redis_url, namespace=namespace, codec=codec) as client:
        jid = await client.put(parent.data())
        await run_jobs(client, parent, charge)
        assert await client.jobs.result(jid) == 77_000_001


async def test_plain_function_calls(client: Client) -> None:
    @job(result_ttl=60)
    def parent(job: Job) -> Any:
        receipt: Any = job.call("charge", charge.data(order=3))
        return receipt.order

    jid = await client.put(parent.data())
    await run_jobs(client, parent, charge)
    assert await client.jobs.result(jid) == 3


async def test_person_does_the_called_job(client: Client, until: Until) -> None:
    @job(queue="desk")
    async def review(job: Job, text: str) -> str:
        raise AssertionError("a person does this")

    @job(result_ttl=60)
    async def publish(job: Job) -> str:
        return await job.call("review", review.data(text="tea"))

    jid = await client.put(publish.data())
    async with worker(client, publish, queues=["default"]):
        await until(lambda: client.jobs.get(f"{jid}-1"))
        reservation = await TaskQueue(client, "desk").reserve(Person("ada", "tab-1"))
        assert reservation is not None
        await reservation.finish("fine")
        assert await client.jobs.result(jid, timeout=30) == "fine"


async def test_option_that_a_called_job_cannot_have_is_refused() -> None:
    @job
    async def parent(job: Job) -> None:
        await job.call("charge", charge.data(order=1).with_options(depends=["x"]))

    ended = await perform(parent.data())
    assert isinstance(ended.error, ValueError) and "depends" in str(ended.error)


async def test_perform_takes_results_and_failures_of_calls() -> None:
    @job(result_ttl=60)
    async def parent(job: Job) -> Any:
        try:
            return (await job.call("charge", charge.data(order=1))).order
        except JobFailed as failed:
            return failed.group

    done = await perform(parent.data(), steps={"charge": {"order": 5}})
    assert done.result == 5
    failed = await perform(parent.data(), steps={"charge": JobFailed("x", "refused", "no")})
    assert failed.result == "refused"
    parked = await perform(parent.data())
    assert isinstance(parked.outcome, RunReleased) and parked.outcome.waits == ("call:charge",)
    [(command, given)] = parked.commands
    assert command == "call" and given["name"] == "charge"
