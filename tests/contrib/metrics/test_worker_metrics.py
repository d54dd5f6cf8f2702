"""What workers report: once, also when replies are lost, and until they are killed."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest
from redis import exceptions

from aioqless import Client, Job, Settings, job
from aioqless.client import CommandConnection, RedisCommand
from aioqless.contrib.metrics import worker_metrics
from aioqless.contrib.metrics.worker_metrics import WorkerMetrics, find_version
from aioqless.contrib.partitions import PartitionedClient, PartitionedWorker
from aioqless.worker.running_jobs import RunningJobs
from tests.conftest import Until


@job(klass="Send", queue="mail")
def send(job: Job) -> None: ...


PROGRAM = """
import asyncio
from aioqless import Client, Settings, Worker
from aioqless.contrib.metrics import worker_metrics
from tests.contrib.metrics.test_worker_metrics import send

worker_metrics.INTERVAL = 0.05

async def main():
    async with Client() as client:
        await Worker(client, [send], name="ann").run()

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_metrics, "INTERVAL", 0.05)


async def runs_of(client: Client) -> int:
    return sum(each.total.runs for each in await client.metrics.klasses())


class Lossy:
    """A connection that loses the replies to reports while `loses` is set."""

    def __init__(self, connection: CommandConnection) -> None:
        self._connection = connection
        self.loses = True
        self.reports = 0

    async def execute(self, *command: str | bytes | int | float) -> Any:
        reply = await self._connection.execute(*command)
        self.reports += 1
        if self.loses:
            raise exceptions.ConnectionError("the reply is lost")
        return reply

    async def execute_many(
        self, commands: list[RedisCommand], *, raise_errors: bool = True
    ) -> list[object]:
        return await self._connection.execute_many(commands, raise_errors=raise_errors)

    async def aclose(self) -> None: ...


async def test_report_whose_reply_was_lost_is_not_added_twice(client: Client, until: Until) -> None:
    lossy: list[Lossy] = []

    def wrap(connection: CommandConnection) -> CommandConnection:
        lossy.append(Lossy(connection))
        return lossy[0]

    view = client.with_connection(wrap)
    counted = WorkerMetrics("ann", RunningJobs("ann", 5))
    for _ in range(3):
        counted.count(("mail", "Send"), "job.completed", 0.1, None)
    async with counted.reporting(view):
        await until(lambda: lossy[0].reports > 10)  # each attempt has been given up several times
        counted.count(("mail", "Send"), "job.completed", 0.1, None)
        lossy[0].loses = False
        await until(lambda: runs_of(client))
    assert await runs_of(client) == 4


async def test_runs_that_a_killed_worker_has_reported_stay(
    client: Client, redis_url: str, until: Until
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM),
        env={**os.environ, "AIOQLESS_URL": redis_url, "AIOQLESS_NAMESPACE": client.namespace},
    )
    try:
        await client.put_many([send.data()] * 5)

        async def reported() -> bool:
            return await runs_of(client) == 5

        await until(reported)
        facts = (await client.metrics.workers("ann"))["ann"]
        (sample, *_) = await client.metrics.worker_history("ann")
    finally:
        process.kill()
        await process.wait()
    assert facts.pid == process.pid and facts.slots == Settings().concurrency
    assert sample.memory > 1 << 20 and sample.start % 60 == 0
    assert await runs_of(client) == 5
    assert (await client.metrics.workers("ann"))["ann"].pid == process.pid, "as it was last"


async def test_partitioned_worker_reports_to_the_first_partition(
    redis_url: str, namespace: str
) -> None:
    async with PartitionedClient(redis_url, namespace=namespace, partitions=4) as client:
        await client.put_many([send.data()] * 20)
        await PartitionedWorker(
            client, [send], settings=Settings(burst=True, version_label="v1")
        ).run()
        assert await runs_of(client) == 20
        assert await runs_of(client.partitions[0]) == 20
        await client.metrics.mark("moved")
        assert [mark.text for mark in await client.metrics.marks()] == ["moved", "v1"]


async def test_job_costs_no_command_more(client: Client, until: Until) -> None:
    async def calls() -> int:
        stats = await client.redis.info("commandstats")
        return int(stats.get("cmdstat_evalsha", {"calls": 0})["calls"])

    counted = WorkerMetrics("ann", RunningJobs("ann", 5))
    before = await calls()
    for number in range(5000):
        counted.count(("mail", f"Send{number % 2000}"), "job.completed", 0.1, 0.2)
    assert await calls() == before

    async def found() -> dict[str, int]:
        return {each.klass: each.total.runs for each in await client.metrics.klasses()}

    async def reported() -> bool:
        return sum((await found()).values()) == 5000

    async with counted.reporting(client):  # the report at its end has a bound of its own
        await until(reported)
    assert len(await found()) == 1001 and (await found())["others"] == 2000


@pytest.mark.parametrize(
    ("environ", "version"),
    [
        ({"RENDER_GIT_COMMIT": "a1", "OTHER": "b"}, "a1"),
        ({"GIT_SHA": "a1", "RENDER_GIT_COMMIT": "b2"}, "a1"),
        ({"GIT_SHA": ""}, ""),
    ],
)
def test_version_is_what_the_platform_says(environ: dict[str, str], version: str) -> None:
    assert find_version(environ) == version
