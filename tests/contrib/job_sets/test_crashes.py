"""Sets whose workers are killed at random: each callback is put once, as a ledger says."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.client.job_set import JobSet
from aioqless.errors import NoSuchJob, WrongState
from tests.contrib.job_sets import programs

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def supervised(url: str, namespace: str, ledger: Path, count: int) -> AsyncIterator[None]:
    """Keep workers running that die at random."""
    command = [
        *(sys.executable, "-m", "aioqless", "worker", "tests.contrib.job_sets.programs"),
        *("--url", url, "--namespace", namespace, "--poll", "0.05", "--concurrency", "5"),
    ]

    async def keep() -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                env={**os.environ, "LEDGER": str(ledger)},
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            try:
                await process.wait()
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    tasks = [asyncio.create_task(keep()) for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def put(client: Client, number: int) -> JobSet:
    """Put a set of a few members, and close it now or later."""
    name = f"set-{number}"
    done, ended = (programs.callback.data(name=f"{name} {what}") for what in ("then", "ended"))
    job_set = client.job_set(name, then=done, when_ended=ended)
    jobs = [
        programs.member.data(children=random.choice((0, 0, 0, 2))).with_options(
            jid=f"{name}-{member}"
        )
        for member in range(random.randrange(6))
    ]
    await job_set.put_many(jobs)
    await job_set.close()
    return job_set


async def disturb(client: Client, sets: list[JobSet]) -> None:
    """Cancel and retry members as operators do."""
    while True:
        job_set = random.choice(sets)
        jid = f"{job_set.name}-{random.randrange(6)}"
        with suppress(NoSuchJob, WrongState):
            if random.random() < 0.1:
                await client.jobs.cancel(jid)
            else:
                await client.jobs.retry(jid)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("place", ["start", "added", "stored"])
async def test_callbacks_are_put_once_though_the_last_member_kills_its_worker(
    client: Client, redis_url: str, tmp_path: Path, place: str
) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    await client.config.set("heartbeat", 2)
    await client.config.set("grace-period", 0)
    done, ended = (programs.callback.data(name=name) for name in ("then", "ended"))
    job_set = client.job_set("m", then=done, when_ended=ended)
    await job_set.put(programs.last.data(place=place))
    await job_set.close()
    async with supervised(redis_url, client.namespace, ledger, 1):
        status = [each async for each in job_set.follow(interval=0.1)][-1]
        assert status.then_jid and status.ended_jid
        for jid in (status.then_jid, status.ended_jid):
            await client.jobs.wait(jid, timeout=120)
    assert (status.added, status.complete) == (2, 2)
    fired = set(ledger.read_text().splitlines())
    assert fired == {f"died {place}", f"then {status.then_jid}", f"ended {status.ended_jid}"}


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.long)])
async def test_each_callback_is_put_once_though_workers_are_killed(
    client: Client, redis_url: str, tmp_path: Path, count: int
) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    await client.config.set("heartbeat", 2)
    await client.config.set("grace-period", 0)
    sets = [await put(client, number) for number in range(count)]
    async with supervised(redis_url, client.namespace, ledger, 2):
        disturber = asyncio.create_task(disturb(client, sets))
        for job_set in sets:
            async for _ in job_set.follow(interval=0.1):
                pass
        disturber.cancel()
        for job_set in sets:  # until all are complete
            while (await job_set.status()).failed or not (await job_set.status()).has_ended:
                await job_set.retry_failed()
                await asyncio.sleep(0.1)
        for job_set in sets:
            status = await job_set.status()
            for jid in filter(None, (status.then_jid, status.ended_jid)):
                await client.jobs.wait(jid, timeout=120)
    fired = defaultdict[str, set[str]](set)
    for line in ledger.read_text().splitlines():
        name, _, jid = line.rpartition(" ")
        fired[name].add(jid)
    for job_set in sets:
        status = await job_set.status()
        assert fired[f"{job_set.name} ended"] == {status.ended_jid}
        assert len(fired[f"{job_set.name} then"]) == (0 if status.canceled else 1), status
        assert status.complete + status.canceled == status.added
    assert not [each for each in await client.check() if "set" in each.problem]
