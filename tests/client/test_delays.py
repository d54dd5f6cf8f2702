"""Why the jobs of a queue wait, with numbers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from aioqless import Client
from aioqless.client import overview, read_overview
from aioqless.client.coverage import QueueDelay
from aioqless.client.overview import OverviewReader


@pytest.fixture
async def earlier(redis_url: str, client: Client) -> AsyncIterator[Client]:
    """Return a client whose jobs are 100 seconds old."""
    begun = time.time() - 100
    async with Client(redis_url, namespace=client.namespace, clock=lambda: begun) as earlier:
        yield earlier


@pytest.fixture(autouse=True)
async def mail(earlier: Client, client: Client) -> None:
    """Put three jobs, and register a worker that serves the queue."""
    for _ in range(3):
        await earlier.queue("mail").put("Greet", {})
    await client.internals.store.beat(worker="ann", process="{}", queues=["ma*"])
    await client.queue("elsewhere").pop(worker="ann")


async def delay_of(client: Client, queue: str = "mail") -> QueueDelay:
    return (await read_overview(client)).coverage.delays[queue]


async def test_queue_without_a_worker(client: Client, earlier: Client) -> None:
    await earlier.queue("post").put("Greet", {})
    delay = await delay_of(client, "post")
    assert delay.reason == "no_worker" and delay.lag > 90
    assert str(delay) == "1 job waits in post: no worker serves it"
    (gap,) = (await read_overview(client)).coverage.unserved
    assert gap.queue == "post"


async def test_paused_queue(client: Client) -> None:
    await client.queue("mail").pause()
    assert str(await delay_of(client)) == "3 jobs wait in mail: the queue is paused"


async def test_paused_queue_is_not_reported_as_unserved(client: Client, earlier: Client) -> None:
    await earlier.queue("post").put("Greet", {})
    await client.queue("post").pause()
    assert (await read_overview(client)).coverage.unserved == []


async def test_rate_limit(client: Client) -> None:
    await client.config.set("mail-rate-limit", "1/60")
    await client.queue("mail").pop(worker="ruby")
    delay = await delay_of(client)
    assert delay.reason == "rate_limit"
    assert delay.detail.startswith("1 of 1 starts in 60 s used (rate limit), next in ")


async def test_starts_under_a_rate_limit_show_that_someone_serves_the_queue(
    client: Client, earlier: Client
) -> None:
    await client.config.set("post-rate-limit", "10/60")
    for _ in range(2):
        await earlier.queue("post").put("Greet", {})
    (job,) = await client.queue("post").pop(worker="ruby")
    await job.complete()
    assert (await delay_of(client, "post")).reason == "workers_idle"
    assert (await read_overview(client)).coverage.unserved == []


async def test_concurrency_limit(client: Client) -> None:
    await client.config.set("mail-max-concurrency", 1)
    await client.queue("mail").pop(worker="ann")
    delay = await delay_of(client)
    assert delay.reason == "concurrency_limit"
    assert delay.detail == "1 of 1 jobs run (concurrency limit)"


async def test_klass_without_a_handler(client: Client, earlier: Client) -> None:
    await earlier.queue("main").put("Greet", {})
    (job,) = await earlier.queue("main").pop(worker="bob")
    await earlier.internals.store.decline(
        jid=job.jid, worker="bob", delay=0, timeout=600, group="none", message="no handler"
    )
    delay = await delay_of(client, "main")
    assert delay.reason == "unknown_klass"
    assert delay.detail.startswith("no worker has a handler for Greet, declined for 100 s")


async def test_busy_and_idle_workers(client: Client) -> None:
    assert (await delay_of(client)).reason == "workers_idle"
    await client.queue("other").put("Greet", {})
    await client.queue("other").pop(worker="ann")
    delay = await delay_of(client)
    assert delay.reason == "workers_busy"
    assert delay.detail == "its 1 worker may be full, with 1 job"


async def test_jobs_that_have_just_become_ready_are_not_delayed(client: Client) -> None:
    await client.queue("main").put("Greet", {})
    assert "main" not in (await read_overview(client)).coverage.delays


async def test_workers_without_a_job_for_a_moment_are_not_idle(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    overviews = OverviewReader(client)
    assert (await overviews.read()).coverage.delays["mail"].reason == "workers_idle"
    (job,) = await client.queue("mail").pop(worker="ann")
    await job.complete()
    for _ in range(2):  # also in the next one
        delay = (await overviews.read()).coverage.delays["mail"]
        assert delay.reason == "workers_busy"
        assert delay.detail == "its 1 worker may be full: jobs have started recently"
    monkeypatch.setattr(overview, "ACTIVE_FOR", 0)
    assert (await overviews.read()).coverage.delays["mail"].reason == "workers_idle"
