"""A job set over a failover: its callbacks are put once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.exceptions import RedisError

import aioqless
from aioqless import Client, Durability, Worker
from aioqless.client.job.state import JobSetStatus
from tests.servers.processes import SentinelSetup

pytestmark = pytest.mark.long

COUNT = 400
ran: list[str] = []


@aioqless.job(queue="sets", klass="Member")
async def member(_: aioqless.Job, number: int) -> None: ...


@aioqless.job(queue="sets", klass="Callback")
async def callback(job: aioqless.Job) -> None:
    ran.append(job.jid)


async def follow(job_set: aioqless.JobSet) -> AsyncIterator[JobSetStatus]:
    """Yield the status until the set has ended, from the new master if there is none now."""
    while True:
        with suppress(RedisError):
            async for status in job_set.follow(interval=0.01):
                yield status
            return
        await asyncio.sleep(0.1)


async def test_callbacks_are_put_once_over_a_failover(tmp_path: Path) -> None:
    durability = Durability(replicas=1, timeout=5)
    with SentinelSetup(tmp_path) as watched:
        async with Client(watched.url, durability=durability, timeout=120, patience=120) as client:
            await client.config.set("heartbeat", 3)
            await client.config.set("grace-period", 0)
            members = client.job_set("m", then=callback.data(), when_ended=callback.data())
            await members.put_many(member.data(number=number) for number in range(COUNT))
            await members.close()
            killed = False
            settings = aioqless.Settings(concurrency=2)
            async with Worker(client, [member, callback], settings=settings):
                async for status in follow(members):
                    if status.complete > COUNT / 10 and not killed:
                        killed = True
                        watched.master().kill()
                assert status.then_jid and status.ended_jid
                for jid in (status.then_jid, status.ended_jid):
                    await client.jobs.wait(jid, timeout=120)
            assert killed and (status.complete, status.added) == (COUNT, COUNT)
            assert set(ran) == {status.then_jid, status.ended_jid}
            assert await client.check() == []
