"""What the beats of workers report: once, also when replies are lost, and until they are killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import exceptions

from aioqless import Client, Inject, Job, Settings, job, lifespan
from aioqless.client import CommandConnection, RedisCommand
from aioqless.contrib.partitions import PartitionedClient, PartitionedWorker
from aioqless.worker import Worker
from aioqless.worker.context import Lifecycle, Outage, WorkerContext
from aioqless.worker.parts import presence
from aioqless.worker.parts.presence import Presence
from aioqless.worker.run_counts import EndedRun, RunCounts
from aioqless.worker.settings import find_version
from aioqless.worker.shared import Shared
from tests.conftest import Until
from tests.worker.conftest import Lines


@job(klass="Send", queue="mail")
def send(job: Job) -> None: ...


PROGRAM = """
import asyncio
from aioqless import Client, Settings, Worker
from aioqless.worker.parts import presence
from tests.worker.test_run_counts import send

presence.INTERVAL = 0.05

async def main():
    async with Client() as client:
        await Worker(client, [send], name="ann").run()

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "INTERVAL", 0.05)
    monkeypatch.setattr(presence, "OVERDUE", 0.0)


async def runs_of(client: Client) -> int:
    return sum(each.total.runs for each in await client.metrics.klasses())


class Lossy:
    """A connection that loses the replies to calls while `loses` is set."""

    def __init__(self, connection: CommandConnection) -> None:
        self._connection = connection
        self.loses = False
        self.calls = 0

    async def execute(self, *command: str | bytes | int | float) -> Any:
        reply = await self._connection.execute(*command)
        self.calls += 1
        if self.loses:
            raise exceptions.ConnectionError("the reply is lost")
        return reply

    async def execute_many(
        self, commands: list[RedisCommand], *, raise_errors: bool = True
    ) -> list[object]:
        return await self._connection.execute_many(commands, raise_errors=raise_errors)

    async def aclose(self) -> None: ...


class Reporting:
    """The beats of a worker, whose runs a test counts itself."""

    def __init__(self, client: Client) -> None:
        self.connections: list[Lossy] = []

        def wrap(connection: CommandConnection) -> CommandConnection:
            self.connections.append(Lossy(connection))
            return self.connections[-1]

        view = client.with_connection(wrap)
        shared = Shared(view, [send], settings=Settings(), name="ann")
        self.counts = shared.counts
        lifecycle = Lifecycle("ann", shared.settings)
        self.context = WorkerContext(view, "ann", shared.settings, Outage(), lifecycle)
        self.presence = Presence(self.context, shared)

    def count(self, klass: str = "Send") -> None:
        self.counts.count(EndedRun("mail", klass, "completed", 0.1, 0.2))


async def test_counts_of_beats_whose_replies_were_lost_are_added_once(
    client: Client, until: Until
) -> None:
    worker = Reporting(client)
    for _ in range(3):
        worker.count()
    async with worker.presence:
        (connection,) = worker.connections
        connection.loses = True
        calls = connection.calls
        await until(lambda: connection.calls > calls + 10)  # given up several times
        worker.count()
        connection.loses = False

        async def reported() -> bool:
            return await runs_of(client) == 4

        await until(reported)
    assert await runs_of(client) == 4


async def test_counts_of_a_series_are_summed_up_during_an_outage(
    client: Client, until: Until
) -> None:
    worker = Reporting(client)
    async with worker.presence:
        (connection,) = worker.connections
        connection.loses = True
        calls = connection.calls
        for number in range(5000):
            worker.count(f"Send{number % 2000}")
            if number % 500 == 0:
                called = connection.calls
                await until(lambda: connection.calls > called + 2)  # noqa: B023  awaited here
        assert connection.calls > calls
        counted = vars(worker.counts)["_series"]
        assert len(counted) == 1001
        connection.loses = False

        async def reported() -> bool:
            return await runs_of(client) == 5000

        await until(reported)


async def test_last_counts_are_reported_when_a_worker_ends(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "INTERVAL", 60)
    await client.put_many([send.data()] * 5)
    await Worker(client, [send], settings=Settings(burst=True)).run()
    assert await runs_of(client) == 5


async def test_beat_carries_counts_with_a_full_memory(own_server: Any) -> None:
    async with Client(own_server.url) as client:
        worker = Reporting(client)
        async with worker.presence:
            await client.redis.config_set("maxmemory", 1)
            worker.count()
        assert await runs_of(client) == 1


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


async def test_partitioned_workers_report_each_run_once(redis_url: str, namespace: str) -> None:
    async with PartitionedClient(redis_url, namespace=namespace, partitions=4) as client:
        await client.put_many([send.data()] * 20)
        settings = Settings(burst=True, version_label="v1")
        for only in ([2, 3], None):  # the first one has no part in the first partition
            await PartitionedWorker(client, [send], settings=settings, only=only).run()
        assert await runs_of(client) == 20
        (found,) = await client.metrics.klasses(klass="Send")
        starts = [each.start for each in found.periods]
        assert found.total.run.count == 20 and starts == sorted({*starts})
        parts = [await runs_of(each) for each in client.partitions]
        assert sum(parts) == 20 and parts[1] == parts[3] == 0
        await client.metrics.mark("moved")
        assert [mark.text for mark in await client.metrics.marks()] == ["moved", "v1"]


async def test_partitioned_worker_is_described_once(
    redis_url: str, namespace: str, until: Until
) -> None:
    async with (
        PartitionedClient(redis_url, namespace=namespace, partitions=3) as client,
        PartitionedWorker(client, [send], name="ann"),
    ):
        await until(lambda: client.metrics.workers("ann"))
        assert (await client.metrics.workers("ann", "bob")).keys() == {"ann"}
        assert len(await client.metrics.worker_history("ann")) in (1, 2)


async def test_other_consumers_report_what_one_that_has_ended_left(client: Client) -> None:
    counts = RunCounts()
    first, second = counts.make_reporter(), counts.make_reporter()
    counts.count(EndedRun("mail", "Send", "completed", 0.1))
    assert (first.next(), second.next()) == (None, None)
    first.active = second.active = True
    assert second.next() is None
    report = first.next()
    assert report and report is first.next()
    assert first.note_answer(report) is False
    counts.count(EndedRun("mail", "Send", "completed", 0.1))
    first.active = False
    assert second.next()


async def test_exporter_that_raises_is_logged_and_the_others_get_the_run(
    client: Client, lines: Lines
) -> None:
    found: list[EndedRun] = []

    def fail(run: EndedRun) -> None:
        raise ValueError("no such label")

    @lifespan
    async def export(counts: RunCounts = Inject) -> AsyncIterator[None]:
        counts.exporters += [fail, found.append]
        yield

    await client.put(send.data())
    await Worker(client, [send, export], settings=Settings(burst=True)).run()
    (run,) = found
    assert (run.queue, run.klass, run.outcome, run.error) == ("mail", "Send", "completed", None)
    assert "no such label" in lines.of("metrics.failed")[0]["error"]
    assert await runs_of(client) == 1


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
