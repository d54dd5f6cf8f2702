"""Output: what a job emits while it runs, and what readers get, whenever they read."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import Any
from unittest.mock import ANY

import pytest

from aioqless import Client, Inject, Job, Retry, Settings, Worker, job
from aioqless.client.job import JobState
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.output import Emitted, Ended, Missed, Output, Restarted
from aioqless.contrib.output import sender as sending
from aioqless.contrib.partitions import PartitionedClient, PartitionedWorker
from aioqless.errors import AioqlessError, DecryptionError
from aioqless.testing import perform
from tests.client.conftest import proxied_client, proxy
from tests.client.proxy import Proxy
from tests.client.proxy_faults import Fault, over_each_fault
from tests.conftest import Until
from tests.contrib.output import in_processes
from tests.server import OwnServer

__all__ = ["proxied_client", "proxy"]  # fixtures


def worker(client: Client, *handlers: Any, **settings: Any) -> Worker:
    return Worker(client, *handlers, settings=Settings(queues=["default"], **settings))


async def read(client: Client, jid: str, after: str | None = None) -> list[Output]:
    async with asyncio.timeout(60):
        return [output async for output in client.jobs.output(jid, after=after)]


async def run(client: Client, handler: Any) -> list[Output]:
    """Put a job and run it; return its output."""
    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        return await read(client, jid)


def values(outputs: list[Output]) -> list[Any]:
    return [output.value for output in outputs if isinstance(output, Emitted)]


@job(output_ttl=60)
async def count(job: Job, to: int, pause: float = 0.0) -> None:
    for number in range(to):
        job.emit(number)
        await asyncio.sleep(pause)


async def test_readers_before_during_and_after_the_run_get_the_same(client: Client) -> None:
    jid = await client.queue("default").put(count.data(to=200, pause=0.002))
    before = asyncio.create_task(read(client, jid))
    async with worker(client, count):
        async with aclosing(client.jobs.output(jid)) as output:
            assert await anext(output) == Emitted(0, "1-1")
        during = asyncio.create_task(read(client, jid))
        expected: list[Output] = [Emitted(number, f"1-{number + 1}") for number in range(200)]
        expected.append(Ended(JobState.COMPLETE, "1-200-end"))
        assert await during == await before == await read(client, jid) == expected


async def test_values_are_sent_together(client: Client, namespace: str) -> None:
    jid = await client.queue("default").put(count.data(to=1000))
    async with worker(client, count):
        assert values(await read(client, jid)) == list(range(1000))
    assert await client.redis.xlen(f"{namespace}:x:output:{jid}") < 20


async def test_what_is_no_json_is_left_out_and_the_handler_continues(client: Client) -> None:
    @job
    async def handler(job: Job) -> None:
        for value in (1, object(), 3):
            job.emit(value)

    found = await run(client, handler)
    assert found[:3] == [Emitted(1, "1-1"), Missed(1, "1-2"), Emitted(3, "1-3")]


async def test_thread_emits(client: Client) -> None:
    @job
    def handler(job: Job) -> None:
        assert threading.current_thread() is not threading.main_thread()
        for number in range(1000):
            job.emit(number)

    assert values(await run(client, handler)) == list(range(1000))


async def test_new_run_restarts_the_output(client: Client) -> None:
    read_first = asyncio.Event()
    runs = 0

    @job
    async def handler(job: Job) -> None:
        nonlocal runs
        runs += 1
        job.emit(f"run {runs}")
        if runs == 1:
            await read_first.wait()
            raise Retry(delay=0)
        job.emit("end")

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        found: list[Output] = []
        async for output in client.jobs.output(jid):
            found.append(output)
            read_first.set()
    second = [Emitted("run 2", "2-1"), Emitted("end", "2-2")]
    assert found[:-1] == [Emitted("run 1", "1-1"), Restarted("2-0"), *second]
    assert (await read(client, jid))[:-1] == second
    assert (await read(client, jid, after="2-0"))[:-1] == second


async def test_kept_output_continues_in_the_next_run(client: Client) -> None:
    runs = 0

    @job(keep_output=True)
    async def handler(job: Job) -> None:
        nonlocal runs
        runs += 1
        job.emit(runs)
        if runs < 3:
            raise Retry(delay=0)

    found = await run(client, handler)
    assert found[:-1] == [Emitted(1, "1-1"), Emitted(2, "1-2"), Emitted(3, "1-3")]


async def test_handler_that_completes_its_job_has_sent_its_output(client: Client) -> None:
    @job
    async def handler(job: Job) -> None:
        job.emit("all")
        await job.complete()

    assert values(await run(client, handler)) == ["all"]


async def test_canceled_job_ends_its_output(client: Client, until: Until) -> None:
    @job
    async def handler(job: Job) -> None:
        job.emit("begun")
        await asyncio.Event().wait()

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        found: list[Output] = []
        async for output in client.jobs.output(jid):
            found.append(output)
            await client.jobs.cancel(jid)
    assert found[-1] == Ended(None, "1-1-end")


async def test_job_that_another_client_ended_is_noticed(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioqless.contrib.output.reader.CHECKED_EVERY", 0.05)
    jid = await client.queue("default").put("Other", {})
    reading = asyncio.create_task(read(client, jid))
    await asyncio.sleep(0.1)  # it waits for an event
    await client.redis.hset(f"{namespace}:j:{jid}", "state", "complete")
    assert await reading == [Ended(JobState.COMPLETE, "0-0-end")]


async def test_position_of_another_output_starts_from_the_beginning(client: Client) -> None:
    jid = await client.queue("default").put(count.data(to=3))
    async with worker(client, count):
        await read(client, jid)
    found = await read(client, jid, after="what is this?")
    assert found[0] == Restarted("0-0")
    assert values(found) == [0, 1, 2]


async def test_output_is_encrypted_where_data_is(
    client: Client, redis_url: str, namespace: str
) -> None:
    codec = Encryption(Encryption.new_key())
    async with Client(redis_url, namespace=namespace, codec=codec) as own:
        jid = await own.queue("default").put(count.data(to=3))
        async with worker(own, count):
            assert values(await read(own, jid)) == [0, 1, 2]
    stored = str(await client.redis.xrange(f"{namespace}:x:output:{jid}"))
    assert "aioqless-encrypted" in stored and "[0" not in stored
    with pytest.raises(DecryptionError):
        await read(client, jid)


async def test_partitioned_client_reads_and_writes_output(redis_url: str, namespace: str) -> None:
    async with PartitionedClient(redis_url, namespace=namespace, partitions=3) as client:
        jids = [await client.put(count.data(to=5)) for _ in range(6)]
        async with PartitionedWorker(client, count, settings=Settings(queues=["default"])):
            for jid in jids:
                assert values(await read(client, jid)) == [0, 1, 2, 3, 4]


async def test_what_exceeds_the_buffer_is_dropped_and_counted(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MOST_KEPT", 10)

    @job
    async def handler(job: Job) -> None:
        for number in range(20):
            job.emit(number)
        await job.flush_output()
        job.emit(20)

    found = await run(client, handler)
    assert values(found) == [*range(10), 20]
    assert Missed(10, "1-20") in found


async def test_outage_delays_output_and_the_handler_continues(
    own_server: OwnServer, until: Until
) -> None:
    down, emitted = asyncio.Event(), asyncio.Event()
    runs: list[Job] = []

    @job
    async def handler(job: Job) -> None:
        runs.append(job)
        job.emit("before")
        await job.flush_output()
        down.set()
        await emitted.wait()

    async with Client(own_server.url) as client:
        jid = await client.queue("default").put(handler)
        async with worker(client, handler):
            reading = asyncio.create_task(read(client, jid))
            await down.wait()
            own_server.kill()
            for number in range(100):
                runs[0].emit(number)
                await asyncio.sleep(0.001)
            own_server.start()
            emitted.set()
            found = await reading
    assert values(found) == ["before", *range(100)]


@pytest.mark.parametrize("runs_before", [0, 1])
async def test_readers_miss_what_a_full_redis_refuses_at_the_end_of_a_run(
    own_server: OwnServer, runs_before: int
) -> None:
    @job(retries=runs_before)
    async def handler(job: Job, client: Client = Inject) -> None:
        job.emit("a")
        await job.flush_output()
        if job.remaining:
            raise Retry(delay=0)
        await client.redis.config_set("maxmemory", "1")
        for number in range(3):
            job.emit(number)

    @job(retries=runs_before)
    async def silent(job: Job, client: Client = Inject) -> None:
        if job.remaining:
            job.emit("a")
            raise Retry(delay=0)
        await client.redis.config_set("maxmemory", "1")
        for number in range(3):
            job.emit(number)

    async with Client(own_server.url) as client:
        for each in (handler, silent):
            jid = await client.put(each.data())
            async with worker(client, each):
                await client.jobs.wait(jid, 30)
            found = [output async for output in client.jobs.output(jid)]
            *_, missed, ended = found
            assert missed == Missed(3, ANY) and isinstance(ended, Ended)
            assert values(found) == (["a"] if each is handler else [])
            await client.redis.config_set("maxmemory", "0")


async def test_closed_client_sends_no_more(own_server: OwnServer) -> None:
    emitted = asyncio.Event()

    @job
    async def handler(job: Job) -> None:
        own_server.kill()
        job.emit("lost")
        emitted.set()
        await asyncio.Event().wait()

    async with Client(own_server.url) as client:
        await client.queue("default").put(handler)
        async with worker(client, handler, shutdown_timeout=0, kill_after=0.1):
            await emitted.wait()
    assert "aioqless output" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_readers_of_a_client_share_one_subscription(client: Client, until: Until) -> None:
    jids = [await client.queue("default").put(count.data(to=20)) for _ in range(5)]
    reading = [asyncio.create_task(read(client, jid)) for jid in jids for _ in range(10)]
    await until(lambda: client.internals.backend.output_watcher.is_subscribed)
    found = await client.redis.client_list()
    assert [each["sub"] for each in found if each["name"] == f"{client.name}.redis"].count("2") == 1
    async with worker(client, count):
        for task in reading:
            assert values(await task) == list(range(20))
    name = f"{client.name}.redis".encode()
    connections = [
        each for each in await client.redis.client_list() if each["name"] == name.decode()
    ]
    assert len(connections) <= 3


async def test_performed_job_has_its_output() -> None:
    assert (await perform(count.data(to=3))).output == [0, 1, 2]


async def test_job_without_a_worker_has_no_output(client: Client) -> None:
    await client.queue("default").put("Greet")
    [popped] = await client.queue("default").pop()
    with pytest.raises(AioqlessError, match="no worker runs it"):
        popped.emit(1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"output_ttl": 0}, ValueError),
        ({"output_ttl": "x"}, TypeError),
        ({"keep_output": 1}, TypeError),
    ],
)
def test_wrong_options_are_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        job(**options)


async def test_process_emits(client: Client) -> None:
    *numbers, no, end = values(await run(client, in_processes.handler))
    assert sorted(each["n"] for each in numbers) == list(range(20))
    assert (no, end) == (False, "end")


async def test_reader_that_does_not_follow_gets_what_is_there(client: Client) -> None:
    emitted, ending = asyncio.Event(), asyncio.Event()

    @job
    async def handler(job: Job) -> None:
        job.emit("there")
        await job.flush_output()
        emitted.set()
        await ending.wait()

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        await emitted.wait()
        assert [each async for each in client.jobs.output(jid, follow=False)] == [
            Emitted("there", "1-1")
        ]
        ending.set()


@over_each_fault
async def test_values_are_stored_once_though_replies_are_lost(
    client: Client,
    proxied_client: Client,
    proxy: Proxy,
    fault: Fault,
) -> None:
    @job
    async def handler(job: Job) -> None:
        for number in range(50):
            if number % 10 == 5:
                fault(proxy)
            job.emit(number)
            await asyncio.sleep(0.01)

    jid = await client.queue("default").put(handler)
    async with worker(proxied_client, handler):
        assert values(await read(client, jid)) == list(range(50))


async def test_output_is_gone_after_its_time(client: Client, until: Until) -> None:
    @job(output_ttl=1)
    async def handler(job: Job) -> None:
        job.emit(1)

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        await client.jobs.wait(jid, 30)
    key = f"{client.namespace}:x:output:{jid}"

    async def gone() -> bool:
        return not await client.redis.exists(key)

    await until(gone)
    assert [type(each) for each in await read(client, jid)] == [Ended]
