"""A worker of all partitions of a namespace, on a single server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioqless import Job, NewJob, Settings, job
from aioqless.contrib.partitions import PartitionedClient, PartitionedWorker
from aioqless.contrib.partitions.routing import generate_jid_in
from aioqless.errors import NameTaken
from tests.conftest import Until, existing_job
from tests.worker.conftest import Lines

QUIET = Settings(queues=("mail",), poll=90)


@job(klass="Greet")
async def greet(job: Job[Any]) -> None: ...


@pytest.fixture(
    params=[pytest.param(1, marks=pytest.mark.long), 4, pytest.param(48, marks=pytest.mark.long)]
)
async def client(
    request: pytest.FixtureRequest, redis_url: str, namespace: str
) -> AsyncIterator[PartitionedClient]:
    count: int = request.param
    async with PartitionedClient(redis_url, namespace=namespace, partitions=count) as client:
        yield client


def jid_in(client: PartitionedClient, partition: int) -> str:
    """Return a new jid of a partition."""
    return generate_jid_in(partition, client.count)


async def run_all(client: PartitionedClient, *jobs: Any, **options: Any) -> None:
    settings = Settings(queues=("mail",), burst=True, **options)
    async with asyncio.timeout(60):
        await PartitionedWorker(client, *jobs, settings=settings).run()


async def test_jobs_of_all_partitions_run_once_and_are_complete(client: PartitionedClient) -> None:
    ran: Counter[str] = Counter()

    @job(klass="Greet")
    async def greet(job: Job[Any], n: int) -> int:
        ran[job.jid] += 1
        return n

    new = [NewJob(greet, {"n": n}) for n in range(300)]
    jids = await client.put_many(new, queue="mail")
    await run_all(client, greet)
    assert ran == Counter(jids)
    assert {each.state for each in await client.jobs.multiget(*jids)} == {"complete"}
    assert await client.check() == []


async def test_idle_worker_is_woken_by_a_put_into_any_partition(
    client: PartitionedClient, until: Until
) -> None:
    ran: list[str] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.jid)

    async with PartitionedWorker(client, greet, settings=QUIET) as worker:
        await until(lambda: worker.idle)
        for partition in range(min(client.count, 8)):
            await client.put(greet, queue="mail", jid=jid_in(client, partition))
        await until(lambda: len(ran) == min(client.count, 8))


async def test_limit_of_a_queue_counts_the_jobs_of_all_partitions(
    client: PartitionedClient,
) -> None:
    most = now = 0
    two = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        if now == 2:
            two.set()
        await two.wait()
        await asyncio.sleep(0.002)
        now -= 1

    await client.put_many([NewJob(stay) for _ in range(40)], queue="mail")
    settings = Settings(queues={"mail": 2}, burst=True)
    async with asyncio.timeout(60):
        await PartitionedWorker(client, stay, settings=settings).run()
    assert most == 2


async def test_partition_with_a_backlog_does_not_keep_others_waiting(
    client: PartitionedClient,
) -> None:
    order: list[int] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        order.append(client.partition_of(job.jid))
        await asyncio.sleep(0.001)

    busy = [NewJob(greet, jid=jid_in(client, 0)) for _ in range(600)]
    await client.put_many(busy, queue="mail")
    for partition in range(1, client.count):
        await client.put(greet, queue="mail", jid=jid_in(client, partition))
    await run_all(client, greet, concurrency=20)
    assert len(order) == 600 + client.count - 1
    if client.count == 4:
        assert max(order.index(partition) for partition in range(1, 4)) < 100


async def test_locks_are_renewed_and_a_canceled_job_is_stopped(
    client: PartitionedClient, until: Until
) -> None:
    began: list[Job[Any]] = []
    stopped: list[str] = []

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job)
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(job.jid)

    await client.config.set("heartbeat", 1)
    jids = await client.put_many([NewJob(stay) for _ in range(6)], queue="mail")
    async with PartitionedWorker(client, stay, settings=QUIET) as worker:
        await until(lambda: len(began) == 6)
        first = {each.jid: each.expires for each in began}
        await until(lambda: all(each.expires > first[each.jid] for each in began))
        await client.jobs.cancel(*jids)
        await until(lambda: len(stopped) == 6)
        assert worker.healthy


async def test_pause_and_shutdown_work_for_all_partitions(
    client: PartitionedClient, until: Until
) -> None:
    began: list[str] = []

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        began.append(job.jid)
        await asyncio.sleep(60)

    settings = Settings(queues=("mail",), poll=90, shutdown_timeout=0.1)
    async with PartitionedWorker(client, stay, settings=settings) as worker:
        await until(lambda: worker.idle)
        worker.pause()
        await client.put_many([NewJob(stay) for _ in range(8)], queue="mail")
        assert not worker.ready
        worker.resume()
        await until(lambda: len(began) == 8)
    counts = await client.queue("mail").counts()
    assert (counts.waiting, counts.running) == (8, 0)
    assert await client.workers.counts() == []


async def test_recurring_job_of_a_handler_is_put_once_per_tick(
    client: PartitionedClient, until: Until
) -> None:
    ran: list[str] = []

    @job(klass="Tick", queue="mail", every=1)
    async def tick(job: Job[Any]) -> None:
        ran.append(job.jid)

    began = time.monotonic()
    async with PartitionedWorker(client, tick, settings=Settings(queues=("mail",), poll=0.1)):
        await until(lambda: len(ran) >= 2)
    found = [job for each in client.partitions async for job in each.recurring.all()]
    assert len(found) == 1
    assert len(set(ran)) == len(ran) <= time.monotonic() - began + 1


async def test_worker_of_some_partitions_leaves_the_others(client: PartitionedClient) -> None:
    for partition in range(client.count):
        await client.put(greet, queue="mail", jid=jid_in(client, partition))
    settings = Settings(queues=("mail",), burst=True)
    await PartitionedWorker(client, greet, settings=settings, only=[0]).run()
    left = [await each.queue("mail").length() for each in client.partitions]
    assert left == [0] + [1] * (client.count - 1)


async def test_stable_name_is_taken_in_all_partitions(
    client: PartitionedClient, until: Until
) -> None:
    async with PartitionedWorker(client, greet, settings=QUIET, name="ann") as worker:
        await until(lambda: worker.idle)
        with pytest.raises(NameTaken):
            await PartitionedWorker(client, greet, settings=QUIET, name="ann").run()
    again = PartitionedWorker(client, greet, settings=QUIET, name="ann")
    async with again:
        await until(lambda: again.idle)


async def test_jobs_of_a_former_process_are_recovered_in_each_partition(
    partitioned: PartitionedClient, until: Until, lines: Lines
) -> None:
    former = json.dumps({"id": "former", "host": "elsewhere", "pid": 1})
    for number, partition in enumerate(partitioned.partitions):
        await partitioned.put(greet, queue="mail", jid=jid_in(partitioned, number))
        await partition.internals.store.beat(worker="ann", process=former)
        await partition.redis.hset(f"{partition.namespace}:x:beat:ann", "at", time.time() - 16)
        await partition.queue("mail").pop(worker="ann")
    async with PartitionedWorker(partitioned, greet, settings=QUIET, name="ann") as worker:
        await until(lambda: len(lines.of("job.completed")) == 4 and worker.idle)


async def test_lines_about_the_worker_are_logged_once_for_all_partitions(
    partitioned: PartitionedClient, until: Until, lines: Lines
) -> None:
    async with PartitionedWorker(partitioned, greet, settings=QUIET, name="ann") as worker:
        await until(lambda: worker.idle)
        worker.pause()
        await until(lambda: lines.of("worker.paused"))
        worker.resume()
        worker.pause()
        await until(lambda: len(lines.of("worker.paused")) == 2)
    assert len(lines.of("worker.paused")) == 2
    assert not any("partition" in line for line in lines.all if line["event"].startswith("worker."))


@pytest.mark.parametrize("only", [[], [4], [-1]])
async def test_partitions_that_do_not_exist_are_refused(
    partitioned: PartitionedClient, only: list[int]
) -> None:
    with pytest.raises(ValueError, match="only"):
        PartitionedWorker(partitioned, greet, only=only)


async def test_command_line_runs_a_worker_of_partitions(
    partitioned: PartitionedClient, redis_url: str
) -> None:
    await partitioned.put_many([NewJob("examples.noop") for _ in range(5)], queue="none")
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioqless", "worker", "tests.contrib.partitions.handlers"),
        *("--burst", "--partitions", "4", "--url", redis_url, "-q", "none"),
        *("--namespace", partitioned.namespace, "--unknown-klass-timeout", "0"),
        stderr=asyncio.subprocess.PIPE,
    )
    with contextlib.suppress(ProcessLookupError):
        _, log = await process.communicate()
    assert process.returncode == 0, log.decode()
    assert await partitioned.queue("none").length() == 0, time.monotonic() - began


@pytest.mark.parametrize("jid", [None, "order-7", "{customer-7}-a", "order-7-failure-1"])
async def test_called_jobs_share_the_partition_of_their_caller(
    client: PartitionedClient, jid: str | None
) -> None:
    @job(klass="Inner", queue="mail")
    async def inner(job: Job[Any]) -> str:
        return job.jid

    @job(klass="Middle", queue="mail")
    async def middle(job: Job[Any]) -> list[str]:
        return [job.jid, await job.call("inner", inner.data())]

    @job(klass="Outer", queue="mail", result_ttl=60)
    async def outer(job: Job[Any]) -> list[str]:
        return await job.call("middle", middle.data())

    put = await client.put(outer.data().with_options(jid=jid) if jid else outer.data())
    await run_all(client, outer, middle, inner)
    called = await client.jobs.result(put)
    assert {client.partition_of(each) for each in called} == {client.partition_of(put)}
    assert [each.state for each in await client.jobs.multiget(*called)] == ["complete"] * 2


async def test_jid_with_a_single_brace_can_call_no_jobs(client: PartitionedClient) -> None:
    @job(klass="Outer", queue="mail")
    async def outer(job: Job[Any]) -> None:
        if job.jid == "a}b":
            await job.call("inner", outer.data())

    put = await client.put(outer.data().with_options(jid="a}b"))
    await run_all(client, outer)
    ended = await existing_job(client, put)
    if client.count > 1:
        assert ended.failure is not None and "single brace" in ended.failure.message
