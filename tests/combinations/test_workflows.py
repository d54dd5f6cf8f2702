"""Workflows combined with retries, timeouts, crashes, lost locks, cancellation and retention."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import (
    Client,
    Job,
    JobFailed,
    Key,
    NoSuchJob,
    Retry,
    chain,
    in_queue,
    job,
)
from aioqless.testing import run_jobs
from tests.combinations import in_processes
from tests.combinations.conftest import existing_job, states
from tests.conftest import Until
from tests.worker.conftest import Work


@job(klass="Flaky", result_ttl=60)
async def flaky(job: Job[Any], name: str = "", delay: float = 0) -> str:
    if job.remaining == job.retries:
        raise Retry(delay=delay)
    return name


@job(klass="Sum", result_ttl=60)
async def total(job: Job[Any]) -> list[Any]:
    return sorted((await job.results()).values())


@job(klass="Slow", timeout=0.05)
async def slow(job: Job[Any]) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("handler", "kind"), [(slow, "timeout"), (in_processes.crash, "ProcessDied")]
)
async def test_dependents_of_a_timed_out_or_crashed_job_fail(
    client: Client, work: Work, handler: Any, kind: str
) -> None:
    put = await client.queue("mail").put_flow(
        chain(handler.data(), total.data()), if_dependency_fails="fail"
    )
    async with work(handler, total, processes=1):
        last = await client.jobs.wait(put.last[0], timeout=60)
        with pytest.raises(JobFailed, match=f"which failed: mail-{kind}"):
            await last.outcome()


async def test_results_outlive_pruned_jobs(client: Client) -> None:
    @job(klass="Brief", result_ttl=60)
    async def brief(job: Job[Any]) -> str:
        return "brief"

    await client.config.set("Brief-jobs-history", 0)
    put = await client.queue("default").put_flow(chain(brief.data(), total.data()))
    await run_jobs(client, brief, total)
    assert await states(client, *put.jids) == [None, "complete"]
    assert await client.jobs.result(put.jids[0]) == "brief" and await client.jobs.result(
        put.last[0]
    ) == ["brief"]
    with pytest.raises(NoSuchJob):
        await client.jobs.wait(put.jids[0], timeout=1)


async def test_context_and_constraints_are_stored_with_each_job_of_a_batch_or_workflow(
    client: Client,
) -> None:
    queue = client.queue("default")
    step = flaky.data(name="a")
    first, second = await queue.put_many([step, total.data()])
    await queue.put_flow(
        chain(
            in_queue("mail", flaky.data(), jid="x", context={"trace": "1"}, unique=Key("k")),
            total.data(),
        )
    )
    x = await existing_job(client, "x")
    assert x.context == {"trace": "1"} and await queue.put("Sum", unique=Key("k")) == "x"
    again = await queue.put_flow(
        chain(
            in_queue("mail", flaky.data(), context={"trace": "2"}, unique=Key("k")),
            total.data(),
        )
    )
    assert again.existing == "x"
    assert (await queue.counts()).depends == 1
    await client.jobs.cancel(first, second)


async def test_wait_continues_when_the_job_is_moved(
    client: Client, work: Work, until: Until
) -> None:
    await client.queue("nobody").put(total, jid="a")
    async with work(total), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(client.jobs.wait("a", timeout=60))
        await until(lambda: client.redis.pubsub_numsub(f"{client.namespace}:log"))
        await (await existing_job(client, "a")).move("mail")
    assert waiting.result().state == "complete"
