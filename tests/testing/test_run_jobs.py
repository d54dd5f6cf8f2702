"""The `run_jobs` fixture and its clock."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Inject, Job, Retry, Worker, job
from aioqless.client.events import Completed
from aioqless.testing import Clock, record_events, run_jobs

order: list[str] = []


@job(klass="Step")
async def step(job: Job[Any], name: str, then: str | None = None, client: Client = Inject) -> None:
    order.append(name)
    if name == "flaky" and job.remaining == job.retries:
        raise Retry(delay=60)
    if then:
        await client.queue("default").put(step.data(name=then))


@pytest.fixture(autouse=True)
def fresh() -> None:
    order.clear()


async def test_drain_runs_jobs_in_order_including_those_they_put(
    aioqless_client: Client,
) -> None:
    async with aioqless_client as client:
        queue = client.queue("default")
        await queue.put(step.data(name="a", then="d"))
        await queue.put(step.data(name="b"))
        await queue.put(step.data(name="c"), priority=-1)
        await run_jobs(client, step)
        assert order == ["c", "a", "b", "d"]
        assert await queue.length() == 0


async def test_delayed_job_runs_after_the_clock_was_advanced(
    aioqless_client: Client, aioqless_clock: Clock
) -> None:
    async with aioqless_client as client:
        await client.queue("default").put(step.data(name="later"), delay=3600)
        await client.queue("default").put(step.data(name="flaky"))
        await run_jobs(client, step)
        assert order == ["flaky"]
        aioqless_clock.move(60)
        await run_jobs(client, step)
        assert order == ["flaky", "flaky"]
        aioqless_clock.move(3540)
        await run_jobs(client, step)
        assert order == ["flaky", "flaky", "later"]


async def test_recurring_job_follows_the_clock(
    aioqless_client: Client, aioqless_clock: Clock
) -> None:
    async with aioqless_client as client:
        await client.queue("default").recur(step, {"name": "tick"}, every=60, jid="r")
        for _ in range(3):
            await run_jobs(client, step)
            aioqless_clock.move(60)
    assert order == ["tick"] * 3


async def test_events_can_be_awaited(aioqless_client: Client) -> None:
    async with aioqless_client as client, record_events(client) as events, Worker(client, step):
        jid = await client.queue("default").put(step.data(name="a"))
        event = await events.wait_for("completed", jid)
        assert isinstance(event, Completed) and event.queue == "default"
        with pytest.raises(
            AssertionError, match=f"no failed .* the events were: put {jid}, completed {jid}"
        ):
            await events.wait_for("failed", timeout=0.05)


async def test_drain_serves_every_queue_also_those_that_jobs_put_into(
    aioqless_client: Client,
) -> None:
    @job(klass="First")
    async def first(job: Job[Any], client: Client = Inject) -> None:
        order.append(job.queue)
        if job.queue != "last":
            await client.queue("late" if job.queue == "early" else "last").put(first)

    async with aioqless_client as client:
        await client.queue("early").put(first)
        await run_jobs(client, first)
        assert order == ["early", "late", "last"]
        await client.queue("early").put(first)
        await run_jobs(client, first, queues=["early"])
        assert order[3:] == ["early"] and await client.queue("late").length() == 1


async def test_drain_leaves_queues_without_a_handler_and_ends_at_a_paused_one(
    aioqless_client: Client,
) -> None:
    async with aioqless_client as client:
        task = await client.queue("desk").put("Review")
        await client.queue("paused").put(step.data(name="p"))
        await client.queue("paused").pause()
        await client.queue("default").put(step.data(name="a"))
        await client.queue("default").put("Unknown", jid="unknown")
        await run_jobs(client, step)
        assert order == ["a"]
        assert [job.jid for job in await client.queue("desk").peek()] == [task]
        assert await client.jobs.failed_counts() == {"default-UnknownKlass": 1}
