"""Partitions on a Cluster: one connection per node, nodes that stop, slots that move."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import exceptions
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from aioqless import Job, NewJob, Settings, job
from aioqless.client import REDIS_UNAVAILABLE
from aioqless.client.events.stream import Stream
from aioqless.client.events.types import AnyEvent, Missed, Put
from aioqless.contrib.outbox import Outbox, Relay
from aioqless.contrib.partitions import PartitionedClient, PartitionedWorker
from aioqless.contrib.partitions.routing import generate_jid_in, partition_of
from aioqless.contrib.private_redis.server_binary import is_older
from aioqless.errors import PutManyError
from aioqless.redis.cluster import slot_of
from tests.conftest import Until
from tests.servers.processes import Cluster, Server, server_program, wait
from tests.worker.conftest import Lines


@pytest.fixture(scope="module", params=[3, pytest.param(6, marks=pytest.mark.long)])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    masters: int = request.param
    # Without replicas: a node that is down must not stop the others.
    options = ("--cluster-require-full-coverage", "no")
    program = server_program()
    with Cluster(folder, *options, masters=masters, replicas=False, program=program) as cluster:
        yield cluster


@pytest.fixture
def namespace(tmp_path: Path) -> str:
    """Return a namespace for each test, since they use one Cluster."""
    return tmp_path.name


def owners(cluster: Cluster, client: PartitionedClient) -> list[Server]:
    """Return the node of each partition."""
    return [cluster.owner(slot_of(partition.namespace)) for partition in client.partitions]


def connections(node: Server, name: str) -> Counter[str]:
    """Return how many connections of a client a node has, by their names."""
    lines = node.ask("CLIENT", "LIST").decode().splitlines()
    names = [dict(each.split("=", 1) for each in line.split())["name"] for line in lines]
    return Counter(each for each in names if each.startswith(name))


async def test_signals_reach_jobs_of_all_partitions(cluster: Cluster, namespace: str) -> None:
    received: list[int] = []

    @job(klass="Wait", queue="mail")
    async def wait_for_signal(job: Job[Any]) -> None:
        received.append(await job.wait_for("go", int))

    async with PartitionedClient(cluster.url, namespace=namespace, partitions=8) as client:
        jids = await client.put_many([NewJob(wait_for_signal) for _ in range(32)], queue="mail")
        for number, jid in enumerate(jids):
            await client.jobs.signal(jid, "go", number)
        settings = Settings(queues=("mail",), burst=True)
        async with asyncio.timeout(60):
            await PartitionedWorker(client, wait_for_signal, settings=settings).run()
    assert sorted(received) == list(range(32))


async def test_jobs_are_spread_evenly_and_each_node_has_one_connection_for_commands(
    cluster: Cluster, namespace: str
) -> None:
    ran: Counter[str] = Counter()

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran[job.jid] += 1

    async with PartitionedClient(
        cluster.url, namespace=namespace, partitions=48, name="ann"
    ) as client:
        placed = Counter(node.port for node in owners(cluster, client))
        assert set(placed.values()) == {48 // len(cluster.masters)}
        jids = await client.put_many([NewJob(greet) for _ in range(480)], queue="mail")
        settings = Settings(queues=("mail",), concurrency=50, burst=True)
        async with asyncio.timeout(60):
            await PartitionedWorker(client, greet, settings=settings).run()
        assert ran == Counter(jids)
        for node in cluster.masters:
            assert connections(node, "ann")["ann"] == 1
            assert connections(node, "ann")["ann.locks"] <= 1


async def test_stopped_node_delays_its_own_jobs_only(
    cluster: Cluster, namespace: str, until: Until
) -> None:
    ran: dict[str, float] = {}

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran[job.jid] = time.monotonic()

    settings = Settings(queues=("mail",), poll=0.2)
    async with PartitionedClient(cluster.url, namespace=namespace, partitions=12) as client:
        homes = owners(cluster, client)
        stopped = homes[0]
        elsewhere = [number for number, node in enumerate(homes) if node is not stopped]
        async with PartitionedWorker(client, greet, settings=settings) as worker:
            await until(lambda: worker.idle)
            stopped.suspend()
            try:
                began = time.monotonic()
                jids = [
                    await client.put(greet, queue="mail", jid=client.jid_for(f"a{n}"))
                    for n in range(300)
                    if client.partition_of(f"a{n}") in elsewhere
                ]
                await until(lambda: all(jid in ran for jid in jids))
                assert max(ran.values()) - began < 20
                assert worker.ready
            finally:
                stopped.resume()
            late = await client.put(greet, queue="mail", jid=client.jid_for("late"))
            jid = next(f"b{n}" for n in range(1000) if client.partition_of(f"b{n}") == 0)
            await client.put(greet, queue="mail", jid=jid)
            await until(lambda: jid in ran and late in ran)


async def test_node_that_is_killed_and_restarted_is_two_lines_of_the_log(
    cluster: Cluster, namespace: str, until: Until, lines: Lines
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    settings = Settings(queues=("mail",), poll=0.2)
    async with PartitionedClient(cluster.url, namespace=namespace, partitions=12) as client:
        node = cluster.masters[1]
        async with PartitionedWorker(client, greet, settings=settings) as worker:
            await until(lambda: worker.idle)
            node.kill()
            await until(lambda: lines.of("worker.redis_lost"))
            node.start()
            await until(lambda: lines.of("worker.redis_reconnected"))
            await until(lambda: worker.idle)
        (lost,), (back,) = lines.of("worker.redis_lost"), lines.of("worker.redis_reconnected")
        assert lost["node"] == back["node"] == node.address
        assert lost["partitions"] == back["partitions"] == 12 // len(cluster.masters)


@pytest.mark.long
async def test_events_of_other_nodes_continue_while_one_is_stopped(
    cluster: Cluster, namespace: str, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioqless.redis.pubsub.MAX_SILENCE", 0.6)
    seen: list[AnyEvent] = []

    async def read(events: Stream) -> None:
        async for event in events:
            seen.append(event)

    def jids(homes: list[int], prefix: str) -> list[str]:
        names = [f"{prefix}{n}" for n in range(200)]
        return [jid for jid in names if partition_of(jid, 12) in homes]

    def are_seen(*jids: str) -> bool:
        return {*jids} <= {event.jid for event in seen if isinstance(event, Put)}

    async with PartitionedClient(
        cluster.url, namespace=namespace, partitions=12, timeout=6
    ) as client:
        homes = owners(cluster, client)
        stopped = homes[5]
        there = [number for number, node in enumerate(homes) if node is not stopped]
        away = [number for number, node in enumerate(homes) if node is stopped]
        async with client.events(kind="put") as events, asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(read(events))
            stopped.suspend()
            try:
                # Long enough for the silent connection to be given up.
                for attempt in "abcdeghijk":
                    for jid in jids(there, attempt):
                        await client.put("Greet", queue="mail", jid=jid)
                    await until(lambda: are_seen(*jids(there, attempt)))  # noqa: B023  # awaited
                    await asyncio.sleep(0.2)
            finally:
                stopped.resume()
            await until(lambda: any(isinstance(event, Missed) for event in seen))
            for jid in jids(away, "f"):
                await client.put("Greet", queue="mail", jid=jid)
            await until(lambda: are_seen(*jids(away, "f")))
            reading.cancel()


async def test_messages_stay_on_the_node_of_their_partition(
    cluster: Cluster, namespace: str
) -> None:
    def sent_to_other_nodes() -> int:
        name = "cluster_stats_messages_publish_sent"
        return sum(int(node.info("CLUSTER", "INFO").get(name, 0)) for node in cluster.masters)

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    before = sent_to_other_nodes()
    async with (
        PartitionedClient(cluster.url, namespace=namespace, partitions=12) as client,
        PartitionedWorker(client, greet, settings=Settings(queues=("mail",))) as worker,
    ):
        jids = [await client.put(greet, queue="mail") for _ in range(50)]
        async with asyncio.timeout(60):
            for jid in jids:
                await (await jid.job()).wait()
        assert (await client.workers.show(worker.name)).queues == ["mail"]
    assert sent_to_other_nodes() == before


@pytest.mark.skipif(
    server_program().name == "redis-server" or is_older(server_program().version, "9.0.0"),
    reason="only Valkey can, from 9.0",
)
async def test_partition_that_moves_is_followed_by_clients_and_workers(
    cluster: Cluster, namespace: str, until: Until
) -> None:
    ran: Counter[str] = Counter()

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran[job.jid] += 1

    settings = Settings(queues=("mail",), poll=0.2)
    async with PartitionedClient(cluster.url, namespace=namespace, partitions=6) as client:
        slot = slot_of(client.partitions[2].namespace)
        old = cluster.owner(slot)
        new = next(node for node in cluster.masters if node is not old)
        jids: list[str] = []
        async with PartitionedWorker(client, greet, settings=settings):
            for step in range(3):
                jids += await client.put_many([NewJob(greet) for _ in range(100)], queue="mail")
                if step == 1:
                    target = cluster.id_of(new)
                    old.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target)
                    await until(lambda: cluster.owner(slot) is new)
            await until(lambda: len(ran) == len(jids))
        assert ran == Counter(jids)
        assert await client.check() == []


@contextmanager
def away(cluster: Cluster, node: Server, how: str) -> Iterator[None]:
    """Freeze or kill a node, and bring it back."""
    if how == "frozen":
        node.suspend()
    else:
        node.kill()
    try:
        yield
    finally:
        if how == "frozen":
            node.resume()
        else:
            node.start()
        wait(cluster.stands)


@pytest.mark.long
@pytest.mark.parametrize("how", [pytest.param("frozen", marks=pytest.mark.long), "killed"])
async def test_sums_while_a_node_is_away_fail_and_name_it_and_other_partitions_can_be_read(
    cluster: Cluster, namespace: str, how: str
) -> None:
    async with PartitionedClient(
        cluster.url, namespace=namespace, partitions=12, timeout=9, patience=0
    ) as client:
        nodes = owners(cluster, client)
        node = nodes[0]
        jobs = [NewJob("Greet", jid=generate_jid_in(number, 12)) for number in range(12)]
        await client.put_many(jobs, queue="mail")
        queue = client.queue("mail")
        with away(cluster, node, how):
            for read in (client.queues(), queue.stats(), client.workers.counts(), client.check()):
                with pytest.raises(REDIS_UNAVAILABLE, match=node.address):
                    await read
            with pytest.raises(REDIS_UNAVAILABLE):
                await queue.pause()
            loads = await client.measure_partitions()
            assert [each.reachable for each in loads] == [each is not node for each in nodes]
            there = [n for n, each in enumerate(nodes) if each is not node]
            lengths = [await client.partitions[n].queue("mail").length() for n in there]
            assert lengths == [1] * len(there)
        await queue.resume()
        (counts,) = await client.queues()
        assert counts.waiting == (12 if how == "frozen" else len(there))  # nothing is on disk


async def test_call_on_an_open_connection_to_a_hung_node_names_the_node(
    cluster: Cluster, namespace: str
) -> None:
    async with PartitionedClient(
        cluster.url, namespace=namespace, partitions=3, timeout=3, patience=0
    ) as client:
        node = owners(cluster, client)[1]
        store = client.partitions[1].internals.store
        await store.connection.execute("PING")
        with away(cluster, node, "frozen"):
            with pytest.raises(exceptions.TimeoutError) as caught:
                await store.connection.execute("PING")
            assert str(caught.value).startswith(f"Redis at {node.address} of redis+cluster://")
            assert str(caught.value).endswith(" did not answer in time")


@pytest.mark.long
async def test_commands_while_a_node_is_away_name_it_and_show_each_other_partition(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "12")

    async def run(command: str, namespace: str, *args: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aioqless", command, *args),
            *("--url", f"{cluster.url}?socket_timeout=3", "--namespace", namespace),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, error = await process.communicate()
        return process.returncode, output.decode(), error.decode()

    async with PartitionedClient(cluster.url, namespace=namespace, partitions=12) as client:
        nodes = owners(cluster, client)
        node = nodes[0]
        jobs = [NewJob("Greet", jid=generate_jid_in(number, 12)) for number in range(12)]
        await client.put_many(jobs, queue="mail")
        other = next(n for n, each in enumerate(nodes) if each is not node)
        partition = client.partitions[other].namespace
    with away(cluster, node, "killed"):
        for command in ("queues", "workers", "stats", "failed", "check"):
            code, _, error = await run(command, namespace)
            assert (code, node.address in error) == (3, True), command
        code, output, _ = await run("partitions", namespace)
        assert code == 0 and node.address in output and "doesn't answer" in output
        code, output, _ = await run("queues", partition, "--json")
        assert (code, json.loads(output)[0]["waiting"]) == (0, 1)


@pytest.mark.long
async def test_put_many_while_a_node_is_away_says_which_jobs_to_put_again(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    outbox = Outbox()
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db")
    async with engine.begin() as transaction:
        await transaction.run_sync(outbox.table.metadata.create_all)
    jobs = [NewJob("Greet", n) for n in range(60)]
    async with PartitionedClient(
        cluster.url, namespace=namespace, partitions=12, timeout=3, patience=0
    ) as client:
        await client.queues()
        gone = owners(cluster, client)[0]
        lost = {n for n, node in enumerate(owners(cluster, client)) if node is gone}
        gone.suspend()
        try:
            with pytest.raises(PutManyError, match="perhaps put") as caught:
                await client.put_many(jobs, queue="mail")
            error = caught.value
            with pytest.raises(exceptions.ConnectionError, match=f"{gone.address} of redis"):
                await client.jobs.get(generate_jid_in(min(lost), 12))
            assert not error.refused and {
                n for n, jid in enumerate(error.jids) if client.partition_of(jid) in lost
            } == set(error.unknown)
            async with AsyncSession(engine) as session, session.begin():
                for partition in (min(lost), next(n for n in range(12) if n not in lost)):
                    jid = generate_jid_in(partition, 12)
                    outbox.put(session, "Greet", jid=jid, queue="other")
            with pytest.raises(exceptions.ConnectionError):
                await Relay(outbox, engine, client).once()
        finally:
            gone.resume()
        await asyncio.to_thread(wait, cluster.stands)
        again = [jobs[n].with_options(jid=error.jids[n], if_exists="keep") for n in error.unknown]
        await client.put_many(again, queue="mail")
        assert await client.queue("mail").length() == len(set(error.jids)) == 60
        assert await Relay(outbox, engine, client).once() == 1
        assert await client.queue("other").length() == 2
    await engine.dispose()
