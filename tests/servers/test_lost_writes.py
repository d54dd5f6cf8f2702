"""A failover that loses writes which the replica didn't have."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.errors import NotDurable
from aioqless.redis.durability import Durability
from tests.servers.processes import Server, wait

pytestmark = pytest.mark.long


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Return a master and its replica."""
    master = Server(tmp_path / "master")
    master.start()
    replica = Server(tmp_path / "replica", "--replicaof", f"127.0.0.1 {master.port}")
    replica.start()
    wait(lambda: "state=online" in master.info("INFO", "replication").get("slave0", ""))
    wait(lambda: replica.info("INFO", "replication").get("master_link_status") == "up")
    yield master, replica
    for each in (master, replica):
        each.kill()


@pytest.mark.parametrize("durability", [None, Durability(replicas=1, timeout=3)])
async def test_job_whose_completion_is_lost_runs_again_and_only_a_durable_one_reports_it(
    pair: tuple[Server, Server], durability: Durability | None
) -> None:
    master, replica = pair
    now = time.time()
    async with Client(
        f"redis://{master.address}", name="ann", clock=lambda: now, durability=durability
    ) as client:
        jid = await client.put("Greet", queue="mail")
        (first,) = await client.queue("mail").pop()
        while not await client.redis.execute_command("WAIT", 1, 1000):
            pass
        replica.ask("REPLICAOF", "NO", "ONE")  # from now on it misses writes
        if durability is None:
            await first.complete()
        else:
            with pytest.raises(NotDurable):
                await first.complete()
        assert (await jid.job()).state == "complete"
        master.kill()
    now += 3600
    async with Client(f"redis://{replica.address}", name="bob", clock=lambda: now) as client:
        job = await client.jobs.get(str(jid))
        assert job is not None
        assert job.state in ("running", "stalled")
        assert await client.queue("mail").pop() == []  # the grace period of ann begins
        now += 3600
        (second,) = await client.queue("mail").pop()
        assert (second.jid, second.fence) == (first.jid, first.fence + 1)
        await second.complete()
