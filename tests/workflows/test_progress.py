"""Progress of a run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from aioqless import Client, Job, Retry, job
from aioqless.client.events import Progressed
from aioqless.client.job.progress_reporter import ProgressReporter
from tests.conftest import Until
from tests.worker import in_processes
from tests.worker.conftest import Work


async def share_of(client: Client, jid: str) -> float | None:
    found = await client.jobs.get(jid)
    return found.last_progress.share if found and found.last_progress else None


async def test_progress_is_readable_and_published(client: Client, work: Work, until: Until) -> None:
    seen = asyncio.Event()

    @job(klass="Read")
    async def read(job: Job[Any]) -> None:
        job.progress(0.4, "page 12")
        await seen.wait()

    jid = await client.queue("mail").put(read)
    async with client.events() as events, work(read):
        event = await anext(event async for event in events if isinstance(event, Progressed))
        assert (event.jid, event.progress, event.message) == (jid, 0.4, "page 12")
        found = await client.jobs.get(jid)
        assert found and found.last_progress
        assert (found.last_progress.share, found.last_progress.message) == (0.4, "page 12")
        assert found.last_progress.when > 1e9
        seen.set()


async def test_thread_can_report_progress(client: Client, work: Work, until: Until) -> None:
    seen = threading.Event()

    @job(klass="Read")
    def read(job: Job[Any]) -> None:
        job.progress(0.5)
        seen.wait(30)

    jid = await client.queue("mail").put(read)
    async with work(read):

        async def half() -> bool:
            return await share_of(client, jid) == 0.5

        try:
            await until(half)
        finally:
            seen.set()


async def test_progress_reports_are_throttled_and_the_latest_arrives(
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
    async with client.events() as events, work(read):
        async for event in events:
            if isinstance(event, Progressed):
                told.append(event.progress or 0.0)
                if told[-1] == 1:
                    break
        assert await share_of(client, jid) == 1
        seen.set()
    assert told == sorted(told)
    assert len(told) < 200, "of 1001"


async def test_run_starts_without_the_progress_of_the_former(
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
        raise Retry(delay=0)

    jid = await client.queue("mail").put(read)
    async with work(read, shutdown_timeout=0):

        async def far() -> bool:
            return await share_of(client, jid) == 0.9

        await until(far)
        told.set()
        await again.wait()
        assert await share_of(client, jid) is None


async def test_progress_of_a_run_without_its_lock_is_refused(client: Client, until: Until) -> None:
    await client.queue("mail").put("Read", jid="a")
    (lost,) = await client.queue("mail").pop()
    await client.jobs.unlock("a")
    (held,) = await client.queue("mail").pop()
    lost.progress(0.9)
    reporter = client.internals.backend.reporter
    assert isinstance(reporter, ProgressReporter)
    await until(lambda: reporter.is_idle)
    held.progress(0.1)

    async def a_tenth() -> bool:
        return await share_of(client, "a") == 0.1

    await until(a_tenth)


@pytest.mark.parametrize(
    ("share", "error"), [(1.1, ValueError), (-0.1, ValueError), ("half", TypeError)]
)
async def test_share_must_be_between_0_and_1(
    client: Client, share: Any, error: type[Exception]
) -> None:
    await client.queue("mail").put("Read", jid="a")
    (held,) = await client.queue("mail").pop()
    with pytest.raises(error, match="share"):
        held.progress(share)


async def test_latest_progress_of_a_process_is_stored(
    client: Client, work: Work, until: Until
) -> None:
    jid = await client.queue("mail").put("Tell")
    async with work(in_processes.tell):

        async def is_half() -> bool:
            found = await client.jobs.get(jid)
            progress = found and found.last_progress
            return bool(progress) and (progress.share, progress.message) == (0.5, "half")

        await until(is_half, 60)
        assert await client.jobs.cancel(jid) == [jid]
