"""A Cluster of three masters with replicas: spread namespaces, failover, slot migration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import exceptions

from aioqless import AioqlessError, Client, Job, Settings, Worker, job
from aioqless.client.events import Put
from aioqless.contrib.partitions import PartitionedClient
from aioqless.contrib.private_redis.server_binary import is_older
from aioqless.redis.cluster import hash_tag, slot_of
from tests.conftest import Until
from tests.servers.load import Ledger, Load, lost
from tests.servers.load import until as eventually
from tests.servers.processes import Cluster, Server, server_program

SPREAD = ("{a}", "{b}", "{c}")  # one on each master


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), program=server_program()) as cluster:
        yield cluster


async def check_ledger(cluster: Cluster, ledgers: dict[str, Ledger]) -> None:
    """Check that each acknowledged job ran once, and the stored data is consistent."""
    for namespace, ledger in ledgers.items():
        async with Client(cluster.url, namespace=namespace) as client:
            assert await lost(client, ledger) == [] and not ledger.put.keys() - ledger.ran.keys()
            assert [jid for jid, times in ledger.ran.items() if len(times) > 1] == []
            assert await client.check() == [] and not ledger.refused


async def wait_for_puts(load: Load, ledgers: dict[str, Ledger], jobs: int) -> None:
    """Wait until this number of further jobs were put in each namespace."""
    before = {namespace: len(ledger.put) for namespace, ledger in ledgers.items()}
    await eventually(
        lambda: all(
            len(ledger.put) >= before[namespace] + jobs for namespace, ledger in ledgers.items()
        ),
        30,
    )


@pytest.mark.long
async def test_each_namespace_is_on_one_node_of_several(cluster: Cluster) -> None:
    assert len({cluster.owner(slot_of(namespace)).port for namespace in SPREAD}) == 3
    for namespace in SPREAD:
        async with Client(cluster.url, namespace=namespace) as client:
            await client.queue("mail").put("Greet", tags=["spread"], jid="tagged")
            await client.jobs.cancel("tagged")
            assert await client.check() == []


async def test_namespace_without_a_hash_tag_is_refused_with_a_valid_name(
    cluster: Cluster,
) -> None:
    for namespace in ("ql", "a{}b", "a{b", "}a{"):
        with pytest.raises(
            ValueError,
            match="has no hash tag: in a Redis Cluster all its keys must be on one node, so name "
            "it ",
        ):
            Client(cluster.url, namespace=namespace)


async def test_slot_without_a_node_raises_a_connection_error(tmp_path: Path) -> None:
    node = Server(tmp_path, "--cluster-enabled", "yes", program=server_program()).start()
    try:
        async with Client(f"redis://{node.address}") as client:
            with pytest.raises(exceptions.ConnectionError, match="CLUSTERDOWN"):
                await client.queue("mail").put("Greet")
    finally:
        node.kill()


async def test_url_of_a_single_server_is_refused_for_a_cluster(cluster: Cluster) -> None:
    elsewhere = next(
        node for node in cluster.nodes[:3] if node is not cluster.owner(slot_of("{a}"))
    )
    async with Client(f"redis://{elsewhere.address}", namespace="{a}") as client:
        with pytest.raises(
            AioqlessError, match=r"is a node of a Cluster.*begin its URL with redis\+cluster://"
        ):
            await client.queue("mail").put("Greet")


async def test_published_messages_wake_an_idle_worker(cluster: Cluster, until: Until) -> None:
    ran: list[float] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(time.monotonic())

    async with Client(cluster.url, namespace="{b}") as client:
        worker = Worker(client, greet, settings=Settings(queues=("mail",), poll=90))
        async with worker, client.events() as events:
            await until(lambda: worker.idle)
            jid = await client.queue("mail").put("Greet")
            event = await anext(aiter(events))
            assert isinstance(event, Put) and event.jid == jid
            await until(lambda: ran)
            assert (await client.workers.show(worker.name)).paused is False


@pytest.mark.parametrize("node", [0, 1, 2, 3])
async def test_any_node_leads_to_the_node_of_the_namespace(cluster: Cluster, node: int) -> None:
    async with Client(
        f"redis+cluster://127.0.0.1:1,{cluster.nodes[node].address}", namespace="{c}"
    ) as client:
        assert await client.queue("mail").length() == 0


# Slot migration


@pytest.mark.skipif(
    server_program().name == "redis-server" or is_older(server_program().version, "9.0.0"),
    reason="only Valkey can, from 9.0",
)
async def test_slot_moved_in_one_step_is_followed_under_load(
    cluster: Cluster,
) -> None:
    slot = slot_of("{a}")
    old = cluster.owner(slot)
    new = next(node for node in cluster.nodes[:3] if node is not old)
    load = Load(cluster.url, SPREAD, callers=5)
    async with load.running() as ledgers:
        await wait_for_puts(load, ledgers, 200)
        old.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", cluster.id_of(new))
        await eventually(lambda: cluster.owner(slot) is new)
        await wait_for_puts(load, ledgers, 200)
    await check_ledger(cluster, ledgers)


async def test_slot_moved_key_by_key_pauses_only_its_namespace(
    cluster: Cluster,
) -> None:
    """Half of the keys are on each node; scripts never get ASK, which is not followed."""
    slot = slot_of("{c}")
    old = cluster.owner(slot)
    new = next(node for node in cluster.nodes[:3] if node is not old)
    load = Load(cluster.url, ("{b}", "{c}"), callers=5)
    async with load.running() as ledgers:
        await wait_for_puts(load, ledgers, 200)
        move = Move(cluster, slot, old, new)
        move.begin()
        async with Client(cluster.url, namespace="{c}", patience=0) as client:
            with pytest.raises(exceptions.ConnectionError, match="ASK"):
                await client.queue("mail").put("Greet")
        moved = 0
        while keys := move.step():
            moved += keys
            await asyncio.sleep(0)
        assert moved > 5
        move.end()
        await wait_for_puts(load, ledgers, 200)
    await check_ledger(cluster, ledgers)


class Move:
    """A slot that is being migrated, with the commands of redis-cli."""

    def __init__(self, cluster: Cluster, slot: int, old: Server, new: Server) -> None:
        self.slot, self.old, self.new = slot, old, new
        self.ids = cluster.id_of(old), cluster.id_of(new)

    def begin(self) -> None:
        self.new.ask("CLUSTER", "SETSLOT", self.slot, "IMPORTING", self.ids[0])
        self.old.ask("CLUSTER", "SETSLOT", self.slot, "MIGRATING", self.ids[1])

    def step(self) -> int:
        keys = self.old.ask("CLUSTER", "GETKEYSINSLOT", self.slot, 100)
        if keys:
            self.old.ask("MIGRATE", "127.0.0.1", self.new.port, "", 0, 5000, "KEYS", *keys)
        return len(keys)

    def end(self) -> None:
        for node in (self.new, self.old):
            node.ask("CLUSTER", "SETSLOT", self.slot, "NODE", self.ids[1])


# Masters are killed. These tests are the last since they change the Cluster.


@pytest.mark.long
async def test_namespace_resumes_within_15_s_of_its_masters_death_and_others_are_unaffected(
    cluster: Cluster,
) -> None:
    load = Load(cluster.url, SPREAD, callers=5)
    slots = {namespace: cluster.owner(slot_of(namespace)) for namespace in SPREAD}
    dying = slots["{b}"]
    async with load.running() as ledgers:
        await wait_for_puts(load, ledgers, 200)
        dying.kill()
        killed = time.monotonic()
        for ledger in ledgers.values():
            ledger.killed = killed
        await wait_for_puts(load, ledgers, 200)
    for namespace, ledger in ledgers.items():
        assert ledger.put_again < 15 and ledger.ran_again < 15 and not ledger.refused
        async with Client(cluster.url, namespace=namespace) as client:
            assert await client.check() == []
            if slots[namespace] is not dying:
                assert await lost(client, ledger) == []
    assert cluster.owner(slot_of("{b}")) is not dying


@pytest.mark.long
async def test_partitions_of_a_dead_master_resume_and_others_on_shared_connections_are_unaffected(
    cluster: Cluster,
) -> None:
    async with PartitionedClient(cluster.url, namespace="whole", partitions=12) as client:
        loads = await client.measure_partitions()
        (dying,) = (node for node in cluster.nodes if node.address == loads[5].node)
        jids = [f"job-{number}" for number in range(60)]
        hit = [jid for jid in jids if loads[client.partition_of(jid)].node == dying.address]
        await client.put("Greet", jid=hit[0])
        dying.kill()
        waiting = [asyncio.create_task(client.put("Greet", jid=jid)) for jid in hit]
        unaffected = sorted(set(jids) - set(hit))
        await asyncio.gather(*(client.put("Greet", jid=jid) for jid in unaffected))
        assert not any(each.done() for each in waiting)
        await asyncio.gather(*waiting)
        assert await client.queue("default").length() == len(jids)
        assert await client.check() == []


@pytest.mark.parametrize(
    ("name", "tag"),
    [("{a}", "a"), ("x{ab}c{d}", "ab"), ("{a}b}", "a"), ("ql", ""), ("{}a", ""), ("{a", "")],
)
def test_hash_tag_is_the_text_in_the_first_braces(name: str, tag: str) -> None:
    assert hash_tag(name) == tag
