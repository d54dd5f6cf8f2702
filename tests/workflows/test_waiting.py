"""Waiting for the end of a job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from redis import exceptions

from aioqless import (
    Client,
    Fail,
    Job,
    JobFailed,
    JobRecord,
    NoSuchJob,
    Settings,
    Worker,
    job,
)
from aioqless.client.jid import Jid
from aioqless.store import ATTEMPTS
from aioqless.store.script_composer import compose
from tests.client.proxy import Proxy
from tests.conftest import Until, existing_job
from tests.server import OwnServer
from tests.worker.conftest import Work
from tests.worker.test_notifications import no_calls


@job(klass="Greet", result_ttl=60)
async def greet(job: Job[Any]) -> str:
    return f"hello {job.jid}"


@job(klass="Bad")
async def bad(job: Job[Any]) -> None:
    raise Fail("there is none", group="no-postcode")


async def test_wait_uses_events_without_polling(client: Client, work: Work, until: Until) -> None:
    jid = await client.queue("mail").put(greet)
    waiting = asyncio.create_task(client.jobs.wait(jid, timeout=60))
    await until(lambda: client.internals.backend.watcher.is_subscribed)
    await until(lambda: no_calls(client))
    async with work(greet):
        assert (await waiting).state == "complete"


async def test_outcome_is_the_result_or_the_failure(client: Client, work: Work) -> None:
    good, wrong = [
        await client.jobs.get(await client.queue("mail").put(each)) for each in (greet, bad)
    ]
    assert good and wrong
    async with work(greet, bad):
        assert await good.outcome(timeout=60) == f"hello {good.jid}"
        with pytest.raises(JobFailed, match="no-postcode: there is none") as caught:
            await wrong.outcome(timeout=60)
    assert (caught.value.jid, caught.value.group, caught.value.message) == (
        wrong.jid,
        "no-postcode",
        "there is none",
    )


async def test_wait_for_a_canceled_job_raises(client: Client, until: Until) -> None:
    jid = await client.queue("mail").put("Greet")
    waiting = asyncio.create_task(client.jobs.wait(jid, timeout=60))
    await until(lambda: client.internals.backend.watcher.is_subscribed)
    await client.jobs.cancel(jid)
    with pytest.raises(NoSuchJob):
        await waiting
    with pytest.raises(NoSuchJob):
        await client.jobs.wait(jid, timeout=60)


async def test_timeout_says_that_no_worker_serves_the_queue(
    client: Client, work: Work, until: Until
) -> None:
    jid = await client.queue("mial").put("Greet")
    with pytest.raises(TimeoutError, match=r"waiting in mial, .* serves; no worker is running$"):
        await jid.result(timeout=0.05)
    async with work(greet):
        await until(client.workers.counts)
        with pytest.raises(TimeoutError, match=r"in mial, which no worker serves; workers serve "):
            await client.jobs.wait(jid, timeout=0.05)


async def test_timeout_says_that_no_worker_knows_the_klass(
    client: Client, work: Work, until: Until
) -> None:
    jid = await client.queue("mail").put("Gret")
    async with work(greet):

        async def is_declined() -> bool:
            job = await client.jobs.get(jid)
            return job is not None and job.state == "scheduled"

        await until(is_declined)
        with pytest.raises(TimeoutError, match="no worker has a handler for Gret, declined for"):
            await jid.result(timeout=0.05)


async def test_timeout_says_what_the_job_does(client: Client) -> None:
    first = await client.queue("mail").put("Greet", delay=60)
    with pytest.raises(TimeoutError, match="it is scheduled in mail, which no worker serves"):
        await first.result(timeout=0.05)
    second = await client.queue("mail").put("Greet", depends=[first])
    with pytest.raises(TimeoutError, match="it waits for the jobs that it depends on"):
        await second.result(timeout=0.05)
    third = await client.queue("mail").put("Greet")
    await client.queue("mail").pause()
    with pytest.raises(TimeoutError, match="it is waiting in mail: the queue is paused"):
        await third.result(timeout=0.05)


async def test_outcome_of_an_ended_job_needs_no_time(client: Client, work: Work) -> None:
    jid = await client.queue("mail").put(greet)
    async with work(greet):
        done = await client.jobs.wait(jid, timeout=60)
    assert await done.outcome(0) == f"hello {jid}"
    assert await done.outcome(0.000001) == f"hello {jid}"


async def test_end_during_an_outage_is_not_missed(own_server: OwnServer, until: Until) -> None:
    async with Client(own_server.url) as client:
        jid = await client.queue("mail").put("Greet")
        waiting = asyncio.create_task(client.jobs.wait(jid, timeout=60))
        await until(lambda: client.internals.backend.watcher.is_subscribed)
        own_server.kill()
        await until(lambda: not client.internals.backend.watcher.is_subscribed)
        own_server.start()
        await client.jobs.cancel(jid)
        with pytest.raises(NoSuchJob):
            await waiting


WAITS: dict[str, Callable[[Client, Jid[Any], JobRecord], Coroutine[Any, Any, Any]]] = {
    "jobs.wait": lambda client, jid, job: client.jobs.wait(jid, timeout=60),
    "jobs.result": lambda client, jid, job: client.jobs.result(jid, timeout=60),
    "job.wait": lambda client, jid, job: job.wait(timeout=60),
    "job.outcome": lambda client, jid, job: job.outcome(timeout=60),
    "jid.result": lambda client, jid, job: jid.result(timeout=60),
}


@pytest.mark.parametrize("lost", ["get", "result"])
@pytest.mark.parametrize("wait", WAITS)
async def test_replies_lost_after_the_end_are_waited_for(
    wait: str, lost: str, client: Client, work: Work, redis_url: str, until: Until
) -> None:
    async with (
        Proxy(redis_url) as proxy,
        Client(proxy.url, namespace=client.namespace) as proxied,
    ):
        jid = await proxied.queue("mail").put(greet)
        found = await existing_job(proxied, jid)
        waiting = asyncio.create_task(WAITS[wait](proxied, jid, found))
        await until(lambda: proxied.internals.backend.watcher.is_subscribed)
        await until(lambda: no_calls(proxied))
        proxy.about = compose(lost, client.namespace).sha.encode()
        proxy.drop = 2 * ATTEMPTS
        async with work(greet):
            ended = await waiting
        assert ended == f"hello {jid}" or ended.state == "complete"


@pytest.mark.parametrize("wait", WAITS)
async def test_wait_that_begins_in_an_outage_goes_through_it(
    wait: str, own_server: OwnServer, until: Until
) -> None:
    async with Client(own_server.url) as client:
        jid = await client.queue("mail").put(greet)
        found = await existing_job(client, jid)
        await Worker(client, greet, settings=Settings(queues=("mail",), burst=True)).run()
        own_server.kill()
        waiting = asyncio.create_task(WAITS[wait](client, jid, found))
        with pytest.raises(exceptions.ConnectionError):
            await client.queue("mail").length()
        own_server.start()
        assert await waiting == f"hello {jid}" or (await waiting).state == "complete"


async def test_closing_the_client_ends_wait(redis_url: str, namespace: str, until: Until) -> None:
    async with Client(redis_url, namespace=namespace) as client:
        waiting = asyncio.create_task(client.jobs.wait(await client.queue("mail").put("Greet")))
        await until(lambda: client.internals.backend.watcher.is_subscribed)
    with pytest.raises(exceptions.ConnectionError):
        await waiting
