"""Several consumers of one worker that share slots, resources and the lock renewer's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from aioqless import Client, Inject, Job, NewJob, Settings, job, resource
from aioqless.worker.context import Lifecycle
from aioqless.worker.shared import Shared
from aioqless.worker.worker import Consumer


class Database:
    """Resource that handlers take."""


async def run_two(one: Client, other: Client, shared: Shared) -> None:
    async def run(client: Client) -> None:
        consumer = Consumer(client, shared, None)
        async with consumer.named():
            await consumer.run()

    async with shared.opened(), asyncio.TaskGroup() as group:
        for client in (one, other):
            group.create_task(run(client))


async def test_consumers_that_share_slots_run_no_more_jobs_at_once_than_one(
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


async def test_burst_ends_when_all_consumers_found_nothing(
    redis_url: str, client: Client, namespace: str
) -> None:
    """Each job puts the next in the other consumer's namespace."""
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


def test_pop_that_was_sent_before_another_consumer_began_a_job_does_not_end_a_burst() -> None:
    lifecycle, woken = Lifecycle("ann", Settings(burst=True)), list[str]()
    one, other = (partial(woken.append, name) for name in ("one", "other"))
    for each in (one, other):
        lifecycle.add_poller(each)
    sent = lifecycle.jobs_left
    lifecycle.count_jobs(1)  # its job may have put one for the other consumer
    assert not lifecycle.note_empty(other, sent) and woken == ["one", "other"]
    assert not lifecycle.note_empty(one, lifecycle.jobs_left)
    assert lifecycle.note_empty(other, lifecycle.jobs_left)
