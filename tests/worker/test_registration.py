"""Workers say which queues they serve, and log queues without workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioqless import Client, Job, Settings, job
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.worker.context import Lifecycle, Outage, WorkerContext
from aioqless.worker.parts.registration import Registration
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


@job(klass="Known")
async def known(job: Job[Any]) -> None: ...


async def served(client: Client) -> list[list[str] | None]:
    return [worker.queues for worker in await client.workers.counts()]


@asynccontextmanager
async def registered(client: Client, *queues: str) -> AsyncIterator[Registration]:
    settings = Settings(queues=queues)
    context = WorkerContext(client, "ann", settings, Outage(), Lifecycle("ann", settings))
    registration = Registration(context, interval=0.02)
    task = asyncio.create_task(registration.run())
    try:
        yield registration
    finally:
        await cancel_and_wait(task)


async def test_worker_is_listed_with_its_queues_until_it_ends(
    client: Client, work: Work, until: Until
) -> None:
    async def serves(*queues: str) -> bool:
        return await served(client) == [list(queues)]

    async with work(known, queues=("mail", "post-*")) as worker:
        await until(lambda: serves("mail", "post-*"))
        worker.subscribe("urgent", limit=3)
        await until(lambda: serves("mail", "post-*", "urgent"))
        worker.unsubscribe("mail")
        await until(lambda: serves("post-*", "urgent"))
    assert await served(client) == []
    assert await client.redis.hlen(f"{client.namespace}:x:subscriptions") == 0


async def test_queue_that_nobody_serves_is_logged_once(
    client: Client, until: Until, lines: Lines
) -> None:
    await client.queue("mial").put(known)
    async with registered(client, "mail"):
        await until(lambda: lines.of("queue.unserved"))
        await asyncio.sleep(0.1)  # the time of several looks
    (line,) = lines.of("queue.unserved")
    assert line["queue"] == "mial" and "did you mean mail?" in line["why"]
    (line,) = lines.of("queue.unused")
    assert line["queue"] == "mail" and "did you mean mial?" in line["why"]


async def test_queue_that_another_worker_serves_is_not_logged(
    client: Client, until: Until, lines: Lines
) -> None:
    await client.queue("post").put(known)
    await client.internals.store.register(worker="bob", queues=["post"])
    async with registered(client, "mail"):
        await asyncio.sleep(0.1)  # the time of several looks
    assert not lines.of("queue.unserved") and not lines.of("queue.unused")


async def test_reason_why_jobs_wait_is_logged_once_by_workers_of_the_queue(
    client: Client, until: Until, lines: Lines
) -> None:
    for queue in ("mail", "other"):
        await client.queue(queue).put(known)
        await client.queue(queue).pause()
    async with registered(client, "ma*"):
        await until(lambda: lines.of("queue.delayed"))
        await asyncio.sleep(0.1)  # the time of several looks
    (line,) = lines.of("queue.delayed")
    assert (line["queue"], line["reason"]) == ("mail", "paused")
    assert line["why"] == "1 job waits in mail: the queue is paused"
    assert not lines.of("queue.unserved")


async def test_queue_announced_later_is_looked_at_after_a_pause(
    client: Client, until: Until, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioqless.worker.parts.registration.LOOK_PAUSE", 0.0)
    async with registered(client, "mail") as registration:
        await asyncio.sleep(0.1)  # the first looks are over
        await client.queue("mial").put(known)
        registration.note_ready("mial")
        await until(lambda: lines.of("queue.unserved", queue="mial"))


async def test_killed_worker_is_forgotten_with_its_queues(client: Client) -> None:
    await client.internals.store.register(worker="dead", queues=["mail"], now=1)
    await client.queue("mail").pop()
    assert await client.redis.hlen(f"{client.namespace}:x:subscriptions") == 0
