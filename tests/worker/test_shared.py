"""Several workers of one process that share slots, resources and the lock renewer's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from aioqless import Client, Inject, Job, NewJob, Settings, Worker, job, resource
from aioqless.worker import Shared
from aioqless.worker.context import Outage
from aioqless.worker.worker import LOCKS_TIMEOUT, Hosted


class Database:
    """Resource that handlers take."""


def hosted(client: Client, shared: Shared) -> Hosted:
    return Hosted(
        host=cast(Any, None),  # stops if a name is lost; there is none
        shared=shared,
        outage=Outage(),
        locks=client.dedicated_store("locks", LOCKS_TIMEOUT),
        slots=shared.running,
        declarations=None,
    )


async def run_two(one: Client, other: Client, shared: Shared) -> None:
    async with shared, asyncio.TaskGroup() as group:
        for client in (one, other):
            group.create_task(Worker(client, hosted=hosted(client, shared)).run())


async def test_workers_that_share_slots_run_no_more_jobs_at_once_than_one(
    redis_url: str, client: Client, namespace: str
) -> None:
    at_once: list[int] = []
    running = 0
    opened: list[Database] = []
    threads: set[threading.Thread] = set()
    before = set(threading.enumerate())

    @resource
    async def database() -> AsyncIterator[Database]:
        opened.append(Database())
        yield opened[-1]

    @job(klass="Count")
    async def count(job: Job[Any], database: Database = Inject) -> None:
        nonlocal running
        running += 1
        at_once.append(running)
        threads.update(
            each
            for each in threading.enumerate()
            if each.name == "aioqless lock renewer" and each not in before
        )
        await asyncio.sleep(0.001)
        running -= 1

    settings = Settings(queues=("mail",), concurrency=3, burst=True)
    async with Client(redis_url, namespace=f"{namespace}-2") as other:
        for each in (client, other):
            await each.queue("mail").put_many(NewJob(count) for _ in range(20))
        await run_two(client, other, Shared(client, count, database, settings=settings))
        for each in (client, other):
            assert (await each.queue("mail").counts()).waiting == 0
    assert len(at_once) == 40
    assert max(at_once) == 3
    assert len(opened) == len(threads) == 1


async def test_burst_ends_when_all_workers_found_nothing(
    redis_url: str, client: Client, namespace: str
) -> None:
    """Each job puts the next in the other worker's namespace."""
    ran: list[int] = []
    async with Client(redis_url, namespace=f"{namespace}-2") as other:

        @job(klass="Pass")
        async def pass_on(job: Job[Any], left: int) -> None:
            ran.append(left)
            if left:
                await (other if left % 2 else client).queue("mail").put(pass_on, {"left": left - 1})

        await client.queue("mail").put(pass_on, {"left": 4})
        shared = Shared(client, pass_on, settings=Settings(queues=("mail",), burst=True))
        await asyncio.wait_for(run_two(client, other, shared), 30)
    assert ran == [4, 3, 2, 1, 0]


async def test_hosted_worker_takes_no_jobs_of_its_own(client: Client) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    with pytest.raises(TypeError, match="its host has the jobs"):
        Worker(client, greet, hosted=hosted(client, Shared(client, greet)))
