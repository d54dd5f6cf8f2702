"""A snapshot is restored as docs/backups.md says."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioqless import Client
from tests.conftest import Until
from tests.server import OwnServer
from tests.servers.processes import Server

FENCES = 1_000_000_000


@asynccontextmanager
async def serve(folder: Path, *, append_only: bool) -> AsyncIterator[Client]:
    """Start a server on a folder and return a client of it."""
    server = Server(folder, "--appendonly", "yes" if append_only else "no").start()
    try:
        async with Client(f"redis://{server.address}") as client:
            yield client
    finally:
        server.kill()


@pytest.fixture
async def snapshot(own_server: OwnServer, tmp_path: Path) -> Path:
    """Take a snapshot while a job runs; another one completes later."""
    async with Client(own_server.url) as client:
        for jid in ("running", "ends-later", "waiting"):
            await client.queue("mail").put("app.greet", jid=jid)
        running = await client.queue("mail").pop(count=2)
        await client.redis.save()
        await running[1].complete()
    folder = tmp_path / "restored"
    folder.mkdir()
    shutil.copy(tmp_path / "dump.rdb", folder)
    return folder


async def test_restored_jobs_run_again_with_fencing_tokens_above_all_earlier_ones(
    snapshot: Path, until: Until
) -> None:
    async with serve(snapshot, append_only=False) as client:
        await client.redis.config_set("appendonly", "yes")
        await client.redis.incrby("ql:x:fence", FENCES)
        assert await client.check() == []
        await client.jobs.unlock("running", "ends-later")
        jobs = await client.queue("mail").pop(count=3)
        assert {job.jid for job in jobs} == {"running", "ends-later", "waiting"}
        assert min(job.fence or 0 for job in jobs) > FENCES

        async def rewritten() -> bool:
            persistence = await client.redis.info("persistence")
            return not persistence["aof_rewrite_in_progress"]

        await until(rewritten)
    async with serve(snapshot, append_only=True) as client:
        waiting = await client.jobs.get("waiting")
        assert waiting
        assert waiting.state == "running", "the append-only file has it"


async def test_server_with_an_append_only_file_ignores_a_snapshot_alone(snapshot: Path) -> None:
    async with serve(snapshot, append_only=True) as client:
        assert await client.queues() == []
