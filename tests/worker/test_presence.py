"""Presence: beats of a worker, its name, and the jobs of workers that are gone."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis as SyncRedis

from aioqless import Client, Settings, Worker
from aioqless.errors import NameTaken
from aioqless.store import Store
from aioqless.worker.parts import presence
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Work
from tests.worker.test_notifications import note
from tests.worker.test_subscriptions import RunningJobs, fill, stage

__all__ = ["stage"]

ANOTHER = json.dumps({"id": "another", "host": "elsewhere", "pid": 1})


@pytest.fixture
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers send beats often."""
    monkeypatch.setattr(presence, "INTERVAL", 0.05)


async def beat(client: Client, name: str = "ann", *, ago: float = 0) -> None:
    """Send a beat as another process."""
    at = await client.internals.store.now() - ago
    await client.internals.store.beat(worker=name, process=ANOTHER, now=at)


async def refusal(client: Client) -> NameTaken:
    with pytest.raises(NameTaken) as refused:
        await asyncio.wait_for(
            Worker(client, note, settings=Settings(queues=("mail",)), name="ann").run(), 30
        )
    return refused.value


async def served(client: Client) -> list[list[str] | None]:
    return [worker.queues for worker in await client.workers.counts()]


async def test_worker_is_listed_with_its_queues_until_it_ends(
    client: Client, work: Work, until: Until
) -> None:
    async def serves(*queues: str) -> bool:
        return await served(client) == [list(queues)]

    async with work(note, queues=("mail", "post-*")) as worker:
        await until(lambda: serves("mail", "post-*"))
        worker.subscribe("urgent", limit=3)
        await until(lambda: serves("mail", "post-*", "urgent"))
        worker.unsubscribe("mail")
        await until(lambda: serves("post-*", "urgent"))
        assert [each.alive for each in await client.workers.counts()] == [True]
    assert await served(client) == []
    assert not [*await client.redis.keys(f"{client.namespace}:x:beat*")]


@pytest.mark.usefixtures("frequent")
async def test_second_worker_of_a_process_cannot_have_the_name(
    client: Client, work: Work, idle: Idle
) -> None:
    async with work(note, name="ann") as worker:
        await idle(worker)
        assert (await refusal(client)).detail["pid"] == os.getpid()
        assert worker.healthy
    async with work(note, name="ann") as worker:
        await idle(worker)


@pytest.mark.usefixtures("frequent")
async def test_one_of_several_workers_that_start_together_gets_the_name(
    client: Client, lines: Lines, until: Until
) -> None:
    workers = [
        Worker(client, note, settings=Settings(queues=("mail",)), name="ann") for _ in range(4)
    ]
    runs = [asyncio.create_task(worker.run()) for worker in workers]
    await until(lambda: sum(run.done() for run in runs) == 3 and lines.of("worker.started"))
    assert all(isinstance(run.exception(), NameTaken) for run in runs if run.done())
    for worker in workers:
        worker.stop()
    await asyncio.gather(*runs, return_exceptions=True)


async def test_name_of_a_process_elsewhere_is_waited_for_until_that_is_seen_to_live(
    client: Client, lines: Lines, until: Until
) -> None:
    await beat(client, ago=5)
    refused = asyncio.create_task(refusal(client))
    await until(lambda: lines.of("worker.waits_for_name"))
    assert not refused.done()
    await beat(client)
    assert "the name 'ann' belongs to process 1 on elsewhere, last seen 0 s ago" in str(
        await asyncio.wait_for(refused, 30)
    )


async def test_jobs_of_a_process_that_is_gone_run_under_its_name(
    client: Client, work: Work, until: Until, stage: RunningJobs, lines: Lines
) -> None:
    await fill(client, "mail", 1)
    await client.queue("mail").pop(worker="ann")
    await beat(client, ago=14)
    async with work(stage.handler, name="ann", shutdown_timeout=0):
        await until(lambda: list(stage.running) == ["mail0"])
    assert lines.of("worker.waits_for_name")
    job = await client.jobs.get("mail0")
    assert job and job.remaining == job.retries


async def test_worker_without_redis_gets_the_name_of_one_that_is_gone_when_it_is_back(
    own_server: Any, lines: Lines, until: Until
) -> None:
    async with Client(own_server.url) as client:
        await beat(client, ago=16)
        own_server.kill()
        async with Worker(client, note, name="ann") as worker:
            await until(lambda: lines.of("worker.redis_lost"))
            own_server.start()
            await until(lambda: worker.idle)


async def test_worker_that_loses_its_name_stops_and_logs_it(
    client: Client, until: Until, stage: RunningJobs, lines: Lines, frequent: None
) -> None:
    await fill(client, "mail", 1)
    worker = Worker(
        client, stage.handler, settings=Settings(queues=("mail",), shutdown_timeout=60), name="ann"
    )
    run = asyncio.create_task(worker.run())
    await until(lambda: stage.running)
    await client.redis.hset(f"{client.namespace}:x:beat:ann", "process", ANOTHER)
    with pytest.raises(NameTaken):
        await asyncio.wait_for(run, 30)
    assert lines.of("worker.name_lost") and not stage.running
    assert await client.redis.exists(f"{client.namespace}:x:beat:ann"), "it is the other's"


async def test_worker_that_sent_no_beat_for_long_pops_nothing_before_it_has(
    client: Client,
    until: Until,
    idle: Idle,
    stage: RunningJobs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send, own = presence.Presence.beat, threading.current_thread()
    seen: list[presence.Presence] = []

    async def send_on_loop(self: presence.Presence, store: Store, **more: Any) -> bool:
        """Send it, but not in the thread or for the timer: as if the process had been stopped."""
        seen.append(self)
        if threading.current_thread() is not own or more:
            return False
        return await send(self, store)

    monkeypatch.setattr(presence.Presence, "beat", send_on_loop)
    worker = Worker(client, stage.handler, settings=Settings(queues=("mail",), poll=30), name="ann")
    run = asyncio.create_task(worker.run())
    await idle(worker)
    await until(lambda: seen)
    vars(seen[0])["_sent"] -= 20
    await client.redis.hset(f"{client.namespace}:x:beat:ann", "process", ANOTHER)
    await fill(client, "mail", 1)
    with pytest.raises(NameTaken):
        await asyncio.wait_for(run, 30)
    assert stage.ran == [] and await client.queue("mail").length() == 1


async def test_beats_are_sent_while_the_loop_is_blocked(
    client: Client, work: Work, idle: Idle, frequent: None
) -> None:
    async with work(note, name="ann") as worker:
        await idle(worker)
        with SyncRedis.from_url(client.url or "") as redis:
            name, end = f"{client.namespace}:x:beat:ann", time.monotonic() + 30
            before = float(redis.hget(name, "at"))
            while float(redis.hget(name, "at")) < before + 0.9:
                assert time.monotonic() < end
                time.sleep(0.05)  # noqa: ASYNC251  the point of it


async def test_beats_are_sent_while_resources_are_opened(
    client: Client, until: Until, monkeypatch: pytest.MonkeyPatch, frequent: None
) -> None:
    import aioqless

    monkeypatch.setattr(presence, "OVERDUE", 0.05)
    opened = asyncio.Event()

    @aioqless.resource
    async def slow() -> AsyncIterator[str]:
        await opened.wait()
        yield "open"

    async def read() -> str:
        return str(await client.redis.hget(f"{client.namespace}:x:beat:ann", "at"))

    settings = Settings(queues=("mail",))
    run = asyncio.create_task(Worker(client, note, slow, settings=settings, name="ann").run())
    first = await until(lambda: client.redis.hget(f"{client.namespace}:x:beat:ann", "at"))
    await until(lambda: _differs(read, str(first)))
    run.cancel()
    await asyncio.wait([run])


async def _differs(read: Any, first: str) -> bool:
    return bool(await read() != first)


async def test_running_worker_gets_the_jobs_of_one_that_is_gone(
    client: Client, work: Work, until: Until, idle: Idle, stage: RunningJobs, lines: Lines
) -> None:
    await fill(client, "mail", 2)
    await client.queue("mail").pop(2, worker="former")
    await beat(client, "former", ago=16)
    async with work(stage.handler, name="ann", shutdown_timeout=0) as worker:
        await idle(worker)
        key = f"{client.namespace}:x:beat:ann"
        await client.redis.hincrbyfloat(key, "since", -16)  # its own beats have arrived for long
        await until(lambda: lines.of("worker.recovered", of="former", jobs=2))
        await until(lambda: len(stage.running) == 2)
        job = await client.jobs.get("mail0")
        assert job and job.remaining == job.retries
        listed = {each.name: each for each in await client.workers.counts()}
        assert (listed["former"].jobs, listed["former"].alive) == (0, False)
