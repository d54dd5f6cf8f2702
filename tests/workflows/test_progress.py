"""How far a run is, for who looks and who listens."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from aioqless import Client, Job, Retry, job
from aioqless.client.job.progress_reporter import ProgressReporter
from tests.conftest import Until
from tests.worker import in_processes
from tests.worker.conftest import Work


async def share_of(client: Client, jid: str) -> float | None:
    found = await client.jobs.get(jid)
    return found.last_progress.share if found and found.last_progress else None


async def test_progress_is_seen_by_who_looks_and_by_who_listens(
    client: Client, work: Work, until: Until
) -> None:
    seen = asyncio.Event()

    @job(klass="Read")
    async def read(job: Job[Any]) -> None:
        job.progress(0.4, "page 12")
        await seen.wait()

    jid = await client.queue("mail").put(read)
    async with client.events.all() as events, work(read):
        event = await anext(event async for event in events if event.name == "progress")
        assert (event.jid, event.more) == (jid, {"progress": 0.4, "message": "page 12"})
        found = await client.jobs.get(jid)
        assert found and found.last_progress
        assert (found.last_progress.share, found.last_progress.message) == (0.4, "page 12")
        assert found.last_progress.when > 1e9
        seen.set()


async def test_a_thread_tells_it_too(client: Client, work: Work, until: Until) -> None:
    seen = threading.Event()

    @job(klass="Read")
    def read(job: Job[Any]) -> None:
        job.progress(0.5)
        seen.wait(10)

    jid = await client.queue("mail").put(read)
    async with work(read):

        async def half() -> bool:
            return await share_of(client, jid) == 0.5

        try:
            await until(half)
        finally:
            seen.set()


async def test_of_many_reports_the_latest_arrives_and_few_are_sent(
    client: Client, work: Work, until: Until
) -> None:
    seen = asyncio.Event()

    @job(klass="Read")
    async def read(job: Job[Any]) -> None:
        for page in range(1001):
            job.progress(page / 1000, f"page {page}")
            await asyncio.sleep(0)
        await seen.wait()

    jid = await client.queue("mail").put(read)
    told = []
    async with client.events.all() as events, work(read):
        async for event in events:
            if event.name == "progress":
                told.append(event.more["progress"])
                if told[-1] == 1:
                    break
        assert await share_of(client, jid) == 1
        seen.set()
    assert told == sorted(told)
    assert len(told) < 50


async def test_a_run_begins_without_the_progress_of_the_one_before(
    client: Client, work: Work, until: Until
) -> None:
    told, again = asyncio.Event(), asyncio.Event()

    @job(klass="Read")
    async def read(job: Job[Any]) -> None:
        if job.remaining < job.retries:
            again.set()
            await asyncio.Event().wait()
        job.progress(0.9)
        await told.wait()
        raise Retry()

    jid = await client.queue("mail").put(read)
    async with work(read, grace=0):

        async def far() -> bool:
            return await share_of(client, jid) == 0.9

        await until(far)
        told.set()
        await again.wait()
        assert await share_of(client, jid) is None


async def test_progress_of_a_run_that_lost_its_lock_is_not_taken(
    client: Client, until: Until
) -> None:
    await client.queue("mail").put("Read", jid="a")
    (lost,) = await client.queue("mail").pop()
    await client.jobs.timeout("a")
    (held,) = await client.queue("mail").pop()
    lost.progress(0.9)
    reporter = client.backend.reporter
    assert isinstance(reporter, ProgressReporter)
    await until(lambda: reporter.is_idle)
    held.progress(0.1)

    async def a_tenth() -> bool:
        return await share_of(client, "a") == 0.1

    await until(a_tenth)


@pytest.mark.parametrize(
    ("share", "error"), [(1.1, ValueError), (-0.1, ValueError), ("half", TypeError)]
)
async def test_a_share_is_between_nothing_and_all(
    client: Client, share: Any, error: type[Exception]
) -> None:
    await client.queue("mail").put("Read", jid="a")
    (held,) = await client.queue("mail").pop()
    with pytest.raises(error, match="share"):
        held.progress(share)


async def test_a_job_in_a_process_of_its_own_is_told_that_it_cannot_tell_progress(
    client: Client, work: Work
) -> None:
    jid = await client.queue("mail").put("Tell")
    async with work(in_processes.tell):
        failed = await client.jobs.wait(jid, timeout=30)
    assert (
        failed.failure
        and "progress: a job in a process of its own has no connection" in failed.failure.message
    )
