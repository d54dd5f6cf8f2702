"""Sets whose last member kills its worker: each callback is put once, as a ledger says."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from aioqless import Client
from tests.contrib.job_sets import programs

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def supervised(url: str, namespace: str, ledger: Path) -> AsyncIterator[None]:
    """Keep a worker running that is killed."""
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

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


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
    async with supervised(redis_url, client.namespace, ledger):
        status = [each async for each in job_set.follow(interval=0.1)][-1]
        assert status.then_jid and status.ended_jid
        for jid in (status.then_jid, status.ended_jid):
            await client.jobs.wait(jid, timeout=120)
    assert (status.added, status.complete) == (2, 2)
    fired = set(ledger.read_text().splitlines())
    assert fired == {f"died {place}", f"then {status.then_jid}", f"ended {status.ended_jid}"}
