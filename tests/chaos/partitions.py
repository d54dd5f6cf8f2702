"""Faults on a Cluster under a partitioned namespace: `python -m tests.chaos.partitions`.

Masters are killed and replaced by their replicas, slots are moved, nodes are stopped for a while,
and jobs flow meanwhile. Then the ledger is compared with Redis, as in the other trials.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from redis.exceptions import RedisError

from aioqless.contrib.partitions import PartitionedClient
from aioqless.redis.cluster import slot_of
from tests.chaos.ledger import Note, read
from tests.chaos.processes import Processes
from tests.chaos.trial import Plan, drain, flow
from tests.chaos.verdict import Verdict, judge
from tests.servers.processes import Cluster, Server, server_program

SHORTEST, LONGEST = 0.3, 1.2  # seconds for which a node is stopped: no failover begins before 2 s
RECOVERY = 40.0  # seconds for a failover, and for a node to be a replica again


class Strikes:
    """The faults; each returns when the Cluster is whole again."""

    def __init__(self, cluster: Cluster, client: PartitionedClient, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._slots = [slot_of(partition.namespace) for partition in client.partitions]

    async def kill_master(self) -> None:
        """Kill the master of a partition; when its replica has taken over, start it again."""
        slot = self._chance.choice(self._slots)
        dying = self._cluster.owner(slot)
        dying.kill()
        await self._until(lambda: self._owner_but(dying, slot))
        dying.start()

    async def stop_node(self) -> None:
        """Stop a master for a moment, which is too short for a failover."""
        node = self._cluster.owner(self._chance.choice(self._slots))
        node.suspend()
        await asyncio.sleep(self._chance.uniform(SHORTEST, LONGEST))
        node.resume()

    async def move_slot(self) -> None:
        """Move a partition to another master in one step."""
        slot = self._chance.choice(self._slots)
        old = self._cluster.owner(slot)
        others = {self._cluster.owner(each).port: self._cluster.owner(each) for each in self._slots}
        others.pop(old.port)
        new = others[self._chance.choice(sorted(others))]
        target = self._cluster.id_of(new)
        old.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target)
        await self._until(lambda: self._cluster.owner(slot) is new)

    async def strike(self, name: str) -> None:
        """Strike, and wait until each master has a replica again."""
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill-master": self.kill_master,
            "stop-node": self.stop_node,
            "move-slot": self.move_slot,
        }
        await kinds[name]()
        await self._until(self._is_whole)

    def _owner_but(self, dying: Server, slot: int) -> bool:
        return any(
            first <= slot <= last and master[1] != dying.port
            for node in self._cluster.nodes
            if node is not dying
            for first, last, master, *_ in node.ask("CLUSTER", "SLOTS")
        )

    def _is_whole(self) -> bool:
        for node in self._cluster.nodes:
            info = node.info("INFO", "replication")
            linked = info.get("master_link_status") == "up"
            if info["role"] == "slave" and not linked:
                return False
            if info["role"] == "master" and info["connected_slaves"] == "0":
                return False
            if node.info("CLUSTER", "INFO")["cluster_state"] != "ok":
                return False
        return True

    async def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + RECOVERY
        while time.monotonic() < deadline:
            try:
                if await asyncio.to_thread(condition):
                    return
            except (RedisError, AssertionError, OSError):
                pass
            await asyncio.sleep(0.1)
        raise TimeoutError("the Cluster did not recover")


async def run_trial(
    options: argparse.Namespace, folder: Path
) -> tuple[Verdict, Counter[str], list[str]]:
    """Let the faults strike in turn until enough jobs were put; return what came of it."""
    os.environ["AIOQLESS_PARTITIONS"] = str(options.partitions)
    chance, plan, struck = random.Random(options.seed), Plan(), list[float]()
    times: Counter[str] = Counter()
    processes = Processes(folder, chance)
    keeper = asyncio.create_task(processes.keep())
    with Cluster(folder / "cluster", masters=options.masters, program=server_program()) as cluster:
        try:
            async with PartitionedClient(cluster.url, timeout=30) as client:
                for option, value in {
                    "heartbeat": plan.heartbeat,
                    "grace-period": plan.grace,
                    "max-lost": 20,
                    "jobs-history-count": 10_000_000,
                }.items():
                    await client.config.set(option, value)
                for _ in range(plan.workers):
                    processes.add_worker(cluster.url, None)
                for _ in range(2):
                    processes.add_producer(cluster.url, options.rate / 2, None)
                await flow(client)
                strikes = Strikes(cluster, client, chance)
                while puts(read(folder)) < options.jobs:
                    await asyncio.sleep(chance.uniform(0.5, 1.5) * options.pause)
                    name = chance.choice(options.only)
                    struck.append(time.monotonic())
                    await strikes.strike(name)
                    times[name] += 1
                await processes.stop_role("producer")
                left = await drain(client, plan.patience)
                await processes.stop_role("worker")
                verdict = await judge(client, read(folder), struck, plan.heartbeat, plan.grace)
        finally:
            keeper.cancel()
            processes.kill_all()
    if times["kill-master"]:  # a replica may not have the completion yet: then the job runs again
        verdict.wrong = [line for line in verdict.wrong if "was completed" not in line]
    verdict.wrong += processes.ends + [f"not processed: {each}" for each in left]
    return verdict, times, left


def puts(notes: list[Note]) -> int:
    """Return how many jobs were acknowledged."""
    return sum(len(note.values[0]) for note in notes if note.what == "put")


def main() -> None:
    kinds = ["kill-master", "stop-node", "move-slot"]
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.partitions", description="Faults on a Cluster while jobs flow."
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=kinds, help="kinds")
    parser.add_argument("--jobs", type=int, default=50_000, help="at least")
    parser.add_argument("--rate", type=float, default=240.0, help="jobs put a second")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds between strikes")
    parser.add_argument("--partitions", type=int, default=48)
    parser.add_argument("--masters", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="aioqless-chaos-partitions-"))
    verdict, times, _ = asyncio.run(run_trial(options, folder))
    strikes = ", ".join(f"{count} {name}" for name, count in sorted(times.items()))
    print(
        f"{strikes}; {verdict.jobs:,} jobs: {verdict.lost} lost, {verdict.holders} with two "
        f"holders, {verdict.twice} completed twice, {verdict.reruns} run again, "
        f"{verdict.given_up} given up, longest recovery {verdict.recovery:.1f} s"
    )
    for line in verdict.wrong[:20]:
        print(f"    {line}")
    if verdict.wrong:
        sys.exit(f"what the processes wrote is in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
