"""Threads and processes combined with draining, timeouts, middleware and resources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aioqless import (
    AioqlessError,
    Client,
    Inject,
    Job,
    Limit,
    Worker,
    job,
    middleware,
    resource,
)
from aioqless.handlers import CallNext
from aioqless.testing import run_jobs
from tests.combinations import in_processes
from tests.combinations.conftest import existing_job
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


def there(path: str) -> bool:
    return Path(path).exists()


def told(folder: Path) -> str:
    return (folder / "told").read_text()


async def test_drain_ends_the_processes_it_started(client: Client) -> None:
    jid = await client.queue("default").put(in_processes.tell)
    await run_jobs(client, in_processes)
    pid = int((await client.jobs.result(jid)).split()[1])
    assert not there(f"/proc/{pid}")


async def test_timed_out_coroutine_in_a_process_leaves_no_scratch_directory(
    client: Client, work: Work, until: Until, lines: Lines, tmp_path: Path
) -> None:
    await client.queue("mail").put(in_processes.unpack, {"folder": str(tmp_path)})
    async with work(in_processes.unpack, processes=1):
        await until(lambda: lines.of("job.failed", group="mail-timeout"))
    assert not there(told(tmp_path))


async def test_middleware_runs_in_the_worker_around_a_process_handler(
    client: Client, work: Work
) -> None:
    @middleware
    async def tenant(job: Job[Any], call: CallNext) -> Any:
        in_processes.TENANT.set("Ann")
        return (await call()).split()[0]

    await client.queue("mail").put(in_processes.tell, jid="a")
    async with work(in_processes.tell, tenant, processes=1):
        assert await (await existing_job(client, "a")).outcome(timeout=60) == "Ann"


async def test_process_handler_with_a_resource_is_refused(
    client: Client,
) -> None:
    @resource
    async def pool() -> AsyncIterator[int]:
        yield 1

    @job(klass="Take", executor="process")
    def take(job: Job[Any], pool: int = Inject) -> None: ...

    with pytest.raises(
        ValueError,
        match="Take is to run in a process, where the worker's resources can't be injected: pool",
    ):
        Worker(client, take, pool)
    with pytest.raises(AioqlessError, match="no @resource of this worker opens one"):
        Worker(client, take)


async def test_many_jobs_of_every_kind_leave_a_consistent_namespace(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(
        klass="Coroutine",
        retry_on=(OSError,),
        backoff=lambda used: 0,
        unique=("n",),
        limits=[Limit("all", max_concurrency=3)],
        result_ttl=60,
    )
    async def coroutine(job: Job[Any], n: int) -> int:
        await asyncio.sleep(0)
        if n % 3 == 0 and job.remaining == job.retries:
            raise OSError
        return n

    @job(klass="Thread", limits=[Limit("all", max_concurrency=3)])
    def thread(job: Job[Any], n: int) -> None:
        if n % 5 == 0:
            raise ValueError

    for n in range(30):
        first = await client.queue("mail").put(coroutine.data(n=n), priority=n % 4)
        await client.queue("mail").put(
            thread.data(n=n), depends=[first], if_dependency_fails="fail"
        )
    async with work(coroutine, thread, concurrency=8):
        await until(lambda: len(lines.of("job.completed")) == 54)
        await until(lambda: len(lines.of("job.failed")) == 6)
    assert await client.jobs.failed_counts() == {"mail-ValueError": 6}
