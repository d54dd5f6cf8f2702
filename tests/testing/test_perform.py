"""Performing a handler without Redis."""

from __future__ import annotations

import os
import threading
import warnings
from contextvars import ContextVar
from typing import Any

import pytest

from aioqless import (
    AioqlessError,
    Client,
    Fail,
    Inject,
    InvalidData,
    Job,
    Limit,
    Next,
    Retry,
    Snooze,
    Throttled,
    bulk_job,
    job,
)
from aioqless.client.new_job import NewJob
from aioqless.handlers.retry_policy import RetryPolicy, fixed
from aioqless.testing import (
    MemoryClient,
    RunCompleted,
    RunFailed,
    RunReleased,
    RunRetried,
    perform,
    perform_bulk,
    perform_sync,
    put_jobs,
    run_jobs,
)


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
            raise Retry(delay=30)
        case 3:
            raise Fail("no money", group="refused")
        case 4:
            await job.complete()
        case 5:
            await job.untag("new")
    raise ConnectionError("bank closed")


async def test_outcome_is_that_of_a_worker() -> None:
    ended = await perform(charge.data(invoice=1), resources={Pool: Pool()})
    assert ended.outcome == RunCompleted(Next("mail", delay=5), None)
    assert ended.job.data == {"invoice": 1, "receipt": "fake"}
    assert [command for command, _ in ended.commands] == ["heartbeat", "log"]


@pytest.mark.parametrize(
    ("invoice", "outcome"),
    [(2, RunRetried(30)), (3, RunFailed("refused", "no money")), (4, None)],
)
async def test_outcome_raised_by_the_handler_is_returned(invoice: int, outcome: object) -> None:
    assert (
        await perform(charge.data(invoice=invoice), resources={Pool: Pool()})
    ).outcome == outcome


async def test_error_fails_the_job_or_is_retried_by_the_policy() -> None:
    ended = await perform(charge.data(invoice=6), resources={Pool: Pool()}, queue="bank")
    assert isinstance(ended.outcome, RunFailed) and ended.outcome.group == "bank-ConnectionError"
    assert isinstance(ended.error, ConnectionError)
    policy = RetryPolicy(ConnectionError, backoff=fixed(7))
    again = (await perform(charge.data(invoice=6), resources={Pool: Pool()}, retry=policy)).outcome
    assert isinstance(again, RunRetried) and again.delay == 7


async def test_calls_that_need_redis_raise() -> None:
    ended = await perform(charge.data(invoice=5), resources={Pool: Pool()})
    assert isinstance(ended.error, AioqlessError) and "can't run tag" in str(ended.error)


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
    assert done.outcome == RunCompleted(result=b"60 3")
    assert done.commands == [("progress", {"share": 0.5, "message": "halfway"})]


@pytest.mark.parametrize(
    "end", [Retry(delay=30), Snooze(30), Throttled(Limit("api", rate=(1, 60)), 30)]
)
async def test_changed_data_is_part_of_the_outcome_of_retry_and_snooze(end: Exception) -> None:
    @job(klass="Page")
    async def page(job: Job[Any]) -> None:
        job.data["page"] += 1
        raise end

    done = await perform(NewJob(page, {"page": 1}))
    assert isinstance(done.outcome, RunRetried | RunReleased)
    assert (done.outcome.data, done.job.data) == (b'{"page":2}', {"page": 2})


async def test_pause_of_a_limit_and_what_a_run_charges_are_returned() -> None:
    of_model = Limit(("model",), rate=(1000, 60), cost="tokens")

    @job(klass="Ask", limits=[of_model])
    async def ask(job: Job, model: str = "small", tokens: int = 100) -> None:
        await job.charge(of_model, 40)
        raise Throttled(of_model, 30)

    done = await perform(ask.data())
    assert isinstance(done.outcome, RunReleased)
    assert (done.outcome.paused_key, done.outcome.delay) == ('Ask:["small"]', 30)
    ((command, charged),) = done.commands
    assert (command, charged["key"], charged["used"]) == ("charge", 'Ask:["small"]', 40)


@job(klass="Ship", queue="orders", priority=-3, tags=["parcel"], retries=2)
async def ship(job: Job[Any]) -> list[object]:
    return [job.queue, job.priority, job.tags, job.retries, job.remaining]


async def test_job_has_the_defaults_of_its_handler() -> None:
    assert (await perform(ship.data())).result == ["orders", -3, ["parcel"], 2, 2]


async def test_fields_given_to_perform_override_the_defaults_of_the_handler() -> None:
    ended = await perform(ship.data(), queue="returns", priority=1, tags=["b"], retries=4)
    assert ended.result == ["returns", 1, ["b"], 4, 4]
    assert (await perform(ship.data(), remaining=1)).result == ["orders", -3, ["parcel"], 2, 1]
    assert (await perform(ship.data().with_options(retries=0))).result[-2:] == [0, 0]


async def test_performed_handler_puts_on_the_open_memory_client(
    aioqless_memory_client: MemoryClient,
) -> None:
    @job
    async def order(job: Job[Any]) -> None:
        await ship.put()

    async with aioqless_memory_client as client:
        assert (await perform(order.data())).error is None
        assert [put.klass for put in put_jobs(client)] == ["Ship"]
    assert "aioqless.testing.MemoryClient" in str((await perform(order.data())).error)


ENDS = {
    "retry": Retry(delay=0),
    "retry-why": Retry("closed"),
    "retry-group": Retry(group="bank"),
    "retry-both": Retry("closed", group="bank"),
    "policy": ConnectionError("closed"),
}


@job(klass="LastRun", retries=0, retry_on=ConnectionError)
async def last_run(job: Job[Any], end: str) -> None:
    raise ENDS[end]


async def test_job_without_retries_left_fails_as_with_a_worker(aioqless_client: Client) -> None:
    async with aioqless_client as client:
        jids = {end: await client.put(last_run.data(end=end)) for end in ENDS}
        await run_jobs(client, last_run)
        for end, jid in jids.items():
            failure = (await client.jobs.get(jid)).failure
            outcome = (await perform(last_run.data(end=end))).outcome
            assert isinstance(outcome, RunFailed), end
            assert failure is not None
            assert (outcome.group, outcome.message) == (failure.group, failure.traceback)


@pytest.mark.parametrize("retries", [0, 2])
async def test_retry_by_the_handler_returns_the_remaining_retries(retries: int) -> None:
    @job
    async def again(job: Job[Any]) -> int:
        return await job.retry()

    assert (await perform(again.data(), retries=retries)).result == retries - 1


@job
async def forgets_to_await(job: Job[Any]) -> None:
    job.heartbeat()  # type: ignore[unused-coroutine]  # on purpose


async def test_handler_that_forgets_to_await_is_refused() -> None:
    with pytest.raises(AioqlessError, match=r"_perform\.py:\d+: coroutine .Job\.heartbeat. was"):
        await perform(forgets_to_await.data())


async def test_forgotten_await_in_a_drained_job_is_refused(client: Client) -> None:
    await client.put(forgets_to_await)
    with pytest.raises(AioqlessError, match=r"'Job\.heartbeat' was never awaited; write `await`"):
        await run_jobs(client, forgets_to_await)


async def test_other_warnings_of_a_performed_handler_are_passed_on() -> None:
    @job
    def warns(job: Job[Any]) -> None:
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    with pytest.warns(DeprecationWarning, match="old"):
        await perform(warns.data())


@bulk_job(klass="Many", queue="many", retries=1)
async def many(jobs: list[Job[int]], pool: Pool = Inject) -> list[int | Exception]:
    for each in jobs:
        each.emit(each.data)
    return [each.data if each.data else Retry(delay=5) for each in jobs]


async def test_jobs_of_a_bulk_handler_are_performed_together() -> None:
    performed = await perform_bulk([many.data(n) for n in range(3)], resources={Pool: Pool()})
    assert [type(each.outcome) for each in performed] == [RunRetried, RunCompleted, RunCompleted]
    assert [each.result for each in performed] == [None, 1, 2]
    assert [each.output for each in performed] == [[0], [1], [2]]
    assert {id(each.job.together[0]) for each in performed} == {id(performed[0].job)}


async def test_one_job_of_a_bulk_handler_is_performed_alone() -> None:
    performed = await perform(many.data(7), resources={Pool: Pool()})
    assert performed.result == 7 and len(performed.job.together) == 1


async def test_bulk_of_several_handlers_or_of_one_without_bulks_is_refused() -> None:
    for jobs in ([], [many.data(1), last_run.data(end="retry")], [last_run.data(end="retry")] * 2):
        with pytest.raises(TypeError, match="perform"):
            await perform_bulk(jobs)


tenant: ContextVar[str] = ContextVar("tenant")


def double(job: Job[Any], number: int) -> int:
    doubled: Any = job.step("double", lambda: 2 * number)  # in a thread, not a coroutine
    return int(doubled)


@job(klass="Here")
def here(job: Job[Any], number: int) -> tuple[int, str, int]:
    job.progress(0.5)
    if number < 0:
        raise ValueError(number)
    return threading.get_ident(), tenant.get(), double(job, number)


@job(klass="OnLoop")
async def on_loop(job: Job[Any]) -> tuple[int, str]:
    return threading.get_ident(), tenant.get()


def test_plain_function_is_performed_on_the_calling_thread() -> None:
    token = tenant.set("a")
    try:
        ended = perform_sync(here.data(number=2))
        assert ended.result == (threading.get_ident(), "a", 4)
        assert [name for name, _ in ended.commands] == ["progress", "step"]
        other = perform_sync(on_loop.data()).result
        assert other[0] != threading.get_ident() and other[1] == "a"
    finally:
        tenant.reset(token)
    failed = perform_sync(here.data(number=-1), retries=0)
    assert isinstance(failed.error, ValueError) and isinstance(failed.outcome, RunFailed)
    with pytest.raises(AioqlessError, match="this call has none"):
        perform_sync(charge.data(invoice=1))


async def test_perform_sync_is_refused_on_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match=r"await perform\("):
        perform_sync(here.data(number=2))
