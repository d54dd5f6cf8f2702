"""Limits, fair turns and bulks over a failover: limits hold, and every job ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from redis.exceptions import RedisError

import aioqless
from aioqless import Client, Durability, Worker
from tests.servers.processes import SentinelSetup

pytestmark = pytest.mark.long

COUNT = 120
AT_ONCE = 2
running: set[str] = set()
at_once: list[int] = []
seen: list[str] = []


@aioqless.job(
    queue="calls",
    klass="Call",
    fair=aioqless.Fair(("customer",)),
    limits=[
        aioqless.Limit("api", max_concurrency=AT_ONCE),
        aioqless.Limit(("customer",), rate=(1000, 1), cost=3),
    ],
)
async def call(job: aioqless.Job, customer: int) -> None:
    running.add(job.jid)
    at_once.append(len(running))
    try:
        await asyncio.sleep(0.02)
    finally:
        running.discard(job.jid)
    seen.append(job.jid)


@aioqless.bulk_job(queue="rows", klass="Rows", size=10, within=0.2)
async def insert(jobs: list[aioqless.Job]) -> None:
    seen.extend(job.jid for job in jobs)


async def test_limited_jobs_and_bulks_end_over_a_failover(tmp_path: Path) -> None:
    durability = Durability(replicas=1, timeout=5)
    with SentinelSetup(tmp_path) as watched:
        async with Client(watched.url, durability=durability, timeout=120, patience=120) as client:
            await client.config.set("heartbeat", 3)
            await client.config.set("grace-period", 0)
            jids = await client.put_many(
                job for n in range(COUNT) for job in (call.data(customer=n % 3), insert.data())
            )
            killed = False
            async with Worker(client, [call, insert], settings=aioqless.Settings(concurrency=8)):
                while not await have_ended(client, jids):
                    if len(seen) > COUNT / 4 and not killed:
                        killed = True
                        watched.master().kill()
            assert killed and max(at_once) == AT_ONCE
            assert set(seen) == set(jids)
            assert await client.check() == []


async def have_ended(client: Client, jids: Sequence[str]) -> bool:
    """Return whether all jobs are complete; False if the master doesn't answer."""
    with suppress(RedisError):
        jobs = await client.jobs.multiget(*jids)
        return {job.state for job in jobs} == {"complete"}
    await asyncio.sleep(0.1)
    return False
