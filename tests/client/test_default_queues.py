"""Handlers' defaults for what is put, and puts that name no queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import Client, InvalidData, Job, NewJob, chain, group, in_queue, job
from aioqless.testing import run_jobs


@job(klass="Greet", queue="mail", priority=-3, tags=["welcome"], retries=2)
async def greet(job: Job[Any], name: str) -> None: ...


@job(klass="Plain")
async def plain(job: Job[Any], n: int = 0) -> None: ...


@job(klass="Number", queue="numbers")
async def number(job: Job[Any], n: int) -> None: ...


async def fields(client: Client, jid: str) -> tuple[str, float, list[str], int]:
    found = await client.jobs.get(jid)
    assert found is not None
    return found.queue, found.priority, found.tags, found.retries


@pytest.mark.parametrize(
    "new", [greet.data(name="Ada"), NewJob(greet, {"name": "Ada"})], ids=["data", "new job"]
)
async def test_put_without_options_has_those_of_the_handler(client: Client, new: NewJob) -> None:
    assert await fields(client, await client.put(new)) == ("mail", -3, ["welcome"], 2)


async def test_options_of_put_override_the_defaults_of_the_handler(client: Client) -> None:
    jid = await client.put(
        greet.data(name="Ada"), queue="urgent", priority=1, tags=["x"], retries=0
    )
    assert await fields(client, jid) == ("urgent", 1, ["x"], 0)


async def test_jobs_put_together_come_into_their_own_queues_in_order(client: Client) -> None:
    new = [plain.data(n) if n % 2 else number.data(n) for n in range(6)]
    jids = await client.put_many(new)
    assert [(await fields(client, jid))[0] for jid in jids] == ["numbers", "default"] * 3
    assert [job.data["n"] for job in await client.queue("numbers").peek()] == [0, 2, 4]
    assert await client.put_many([]) == []


async def test_jobs_put_together_may_share_a_named_queue(client: Client) -> None:
    jids = await client.put_many([greet.data(name="Ada"), plain.data()], queue="one")
    assert {(await fields(client, jid))[0] for jid in jids} == {"one"}


async def test_no_job_is_put_if_one_of_those_put_together_is_wrong(client: Client) -> None:
    with pytest.raises(InvalidData):
        await client.put_many([plain.data(), NewJob(greet, {"name": 5})])
    assert await client.queues() == []


async def test_steps_of_a_workflow_come_into_the_queues_of_their_handlers(client: Client) -> None:
    flow = chain(greet.data(name="Ada"), group(plain.data(), in_queue("own", plain.data())))
    put = await client.put_flow(flow)
    assert [(await fields(client, jid))[0] for jid in put.jids] == ["mail", "default", "own"]
    put = await client.put_flow(flow, queue="named")
    assert [(await fields(client, jid))[0] for jid in put.jids] == ["named", "named", "own"]


async def test_recurring_job_has_the_queue_priority_and_tags_of_its_handler(
    client: Client,
) -> None:
    recurring = await client.recur(greet.data(name="Ada"), every=60, jid="r")
    assert (recurring.queue, recurring.priority, recurring.tags) == ("mail", -3, ["welcome"])
    assert (
        await client.recur(greet.data(name="Ada"), every=60, queue="other", jid="r")
    ).queue == "other"


async def test_declared_recurring_job_has_the_queue_priority_and_tags_of_its_handler(
    client: Client,
) -> None:
    @job(klass="Digest", every=3600, queue="reports", priority=5, tags=["daily"])
    async def digest(job: Job) -> None: ...

    await run_jobs(client, digest)
    declared = await client.recurring.get("Digest")
    assert declared is not None
    assert (declared.queue, declared.priority, declared.tags) == ("reports", 5, ["daily"])


# On the client of the context


async def test_handler_puts_with_options_on_the_open_client(client: Client) -> None:
    jid = await greet.using(queue="urgent", priority=1, delay=60, jid="later").put(name="Ada")
    assert jid == "later"
    assert await fields(client, jid) == ("urgent", 1, ["welcome"], 2)
    assert await fields(client, await greet.using(retries=0).put("Bob")) == (
        *("mail", -3, ["welcome"]),
        0,
    )
    with pytest.raises(TypeError, match="has no option 'name'"):
        greet.using(name="Ada")  # type: ignore[call-arg]


async def test_put_without_an_open_client_says_what_to_do(redis_url: str) -> None:
    with pytest.raises(RuntimeError, match=r"no client is open on this event loop.*client\.put"):
        await greet.put(name="Ada")
    async with Client(redis_url):
        pass
    with pytest.raises(RuntimeError, match="no client is open"):
        await greet.put(name="Ada")


async def test_with_several_open_clients_one_is_chosen(client: Client, redis_url: str) -> None:
    async with Client(redis_url, namespace=f"{client.namespace}-two") as other:
        with pytest.raises(RuntimeError, match=r"2 clients are open.*as_current"):
            await plain.put()
        with other.as_current():
            jid = await plain.put()
            with client.as_current():
                assert Client.current() is client
        assert await other.jobs.get(jid) and not await client.jobs.get(jid)


async def test_job_puts_on_the_client_of_its_worker(client: Client, redis_url: str) -> None:
    @job(klass="Outer")
    async def outer(job: Job) -> None:
        await plain.put(n=7)

    async with Client(redis_url, namespace=f"{client.namespace}-two"):
        await client.put(outer)
        await run_jobs(client, outer, plain)
    assert (await client.queue("default").stats()).run.count == 2


def test_clients_of_other_event_loops_are_not_used(redis_url: str) -> None:
    async def put() -> None:
        with pytest.raises(RuntimeError, match="no client is open"):
            await plain.put()

    async def within() -> None:
        async with Client(redis_url):
            await asyncio.to_thread(asyncio.run, put())

    asyncio.run(within())


def test_client_of_a_job_is_refused_on_an_event_loop_of_its_thread(redis_url: str) -> None:
    async def put() -> None:
        with pytest.raises(RuntimeError, match="opened on another event loop: open one for each"):
            await plain.put()

    async def within() -> None:
        async with Client(redis_url) as client:
            with client.as_current():  # as a worker does for its jobs
                await asyncio.to_thread(asyncio.run, put())

    asyncio.run(within())


@pytest.mark.parametrize("used_before", [True, False])
def test_client_that_was_opened_on_another_event_loop_is_refused(
    redis_url: str, used_before: bool
) -> None:
    async def put(client: Client) -> None:
        with pytest.raises(RuntimeError, match="opened on another event loop: open one for each"):
            await client.put("Greet")

    async def within() -> None:
        async with Client(redis_url, namespace="two-loops") as client:
            if used_before:
                assert await client.queues() == []
            await asyncio.to_thread(asyncio.run, put(client))
            assert await client.queues() == []

    asyncio.run(within())
