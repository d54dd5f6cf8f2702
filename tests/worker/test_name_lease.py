"""The lease of a stable worker name: claims, conflicts and loss."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from typing import Any

import pytest
from redis import Redis as SyncRedis

from aioqless import Client, Settings, Worker
from aioqless.errors import NameTaken
from aioqless.store import ScriptStore
from aioqless.worker.parts import stable_name
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Work
from tests.worker.test_notifications import note
from tests.worker.test_subscriptions import RunningJobs, fill, stage

__all__ = ["stage"]


async def claim(client: Client) -> None:
    """Claim the name as another process."""
    process = {
        "id": "another",
        "host": "elsewhere",
        "pid": 1,
    }
    await client.internals.store.name_lease_claim(worker="ann", process=json.dumps(process))


async def silent(client: Client, seconds: float) -> None:
    """Set how long ago the holder of the name was last seen."""
    await client.redis.hset(
        f"{client.namespace}:x:name-lease:ann", "renewed", time.time() - seconds
    )


async def refusal(client: Client) -> NameTaken:
    with pytest.raises(NameTaken) as refused:
        await asyncio.wait_for(
            Worker(client, note, settings=Settings(queues=("mail",)), name="ann").run(), 30
        )
    return refused.value


async def test_second_worker_of_a_process_cannot_claim_the_name(
    client: Client, work: Work, idle: Idle
) -> None:
    async with work(note, name="ann") as worker:
        await idle(worker)
        assert (await refusal(client)).detail["pid"] == os.getpid()
        assert worker.healthy
    async with work(note, name="ann") as worker:
        await idle(worker)


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


async def test_name_of_a_live_process_elsewhere_is_refused(client: Client) -> None:
    await claim(client)
    assert re.match(
        r"name_lease: the name 'ann' belongs to process 1 on elsewhere, last seen \d+ s ago",
        str(await refusal(client)),
    )


async def test_process_elsewhere_with_an_expired_lease_is_replaced(
    client: Client, work: Work, until: Until, stage: RunningJobs, lines: Lines
) -> None:
    await fill(client, "mail", 1)
    await client.queue("mail").pop(worker="ann")
    await claim(client)
    await silent(client, 61)
    async with work(stage.handler, name="ann", shutdown_timeout=0):
        await until(lambda: list(stage.running) == ["mail0"])
    assert lines.of("worker.recovered", jobs=1)


async def test_worker_that_loses_its_name_stops_and_logs_it(
    client: Client,
    work: Work,
    until: Until,
    stage: RunningJobs,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stable_name, "RENEW", 0.01)
    await fill(client, "mail", 1)
    worker = Worker(
        client, stage.handler, settings=Settings(queues=("mail",), shutdown_timeout=60), name="ann"
    )
    run = asyncio.create_task(worker.run())
    await until(lambda: stage.running)
    await client.redis.hset(
        f"{client.namespace}:x:name-lease:ann",
        "process",
        json.dumps({"id": "another", "pid": 1, "host": "elsewhere"}),
    )
    with pytest.raises(NameTaken):
        await asyncio.wait_for(run, 30)
    assert lines.of("worker.name_lost") and not stage.running
    assert await client.redis.exists(f"{client.namespace}:x:name-lease:ann"), "it is the other's"


async def test_worker_with_an_expired_lease_pops_nothing_before_it_renewed_the_lease(
    client: Client,
    work: Work,
    until: Until,
    idle: Idle,
    stage: RunningJobs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renew, own = stable_name.NameLease.renew, threading.current_thread()

    async def renew_on_loop(lease: stable_name.NameLease, store: ScriptStore) -> bool:
        """Renew it, but not in the thread: as if the process had been stopped."""
        return threading.current_thread() is own and await renew(lease, store)

    monkeypatch.setattr(stable_name.NameLease, "renew", renew_on_loop)
    worker = Worker(client, stage.handler, settings=Settings(queues=("mail",), poll=30), name="ann")
    run = asyncio.create_task(worker.run())
    await idle(worker)
    monkeypatch.setattr(stable_name, "LEASE", 0)
    monkeypatch.setattr(stable_name, "RENEW", 0)
    await client.redis.hset(
        f"{client.namespace}:x:name-lease:ann", "process", json.dumps({"id": "another"})
    )
    await fill(client, "mail", 1)
    with pytest.raises(NameTaken):
        await asyncio.wait_for(run, 30)
    assert stage.ran == [] and await client.queue("mail").length() == 1


async def test_lease_is_renewed_while_the_loop_is_blocked(
    client: Client, work: Work, idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stable_name, "RENEW", 0.01)
    async with work(note, name="ann") as worker:
        await idle(worker)
        with SyncRedis.from_url(client.url or "") as redis:
            name, end = f"{client.namespace}:x:name-lease:ann", time.monotonic() + 30
            before = float(redis.hget(name, "renewed"))
            while float(redis.hget(name, "renewed")) < before + 0.9:
                assert time.monotonic() < end
                time.sleep(0.05)  # noqa: ASYNC251  the point of it


async def test_worker_with_a_stable_name_can_be_stopped_during_an_outage(
    own_server: Any, lines: Lines, until: Until
) -> None:
    async with Client(own_server.url) as client:
        own_server.kill()
        async with Worker(client, note, name="ann") as worker:
            await until(lambda: lines.of("worker.redis_lost"))
        assert not worker.healthy
