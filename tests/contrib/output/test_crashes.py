"""Output over connections that fail, its expiry, and the memory of many readers."""

from __future__ import annotations

import asyncio

import pytest

from aioqless import Client, Job, job
from aioqless.contrib.output import Ended
from tests.client.conftest import proxied_client, proxy  # noqa: F401  # fixtures
from tests.client.proxy import Proxy
from tests.client.proxy_faults import Fault, over_each_fault
from tests.conftest import Until
from tests.contrib.output.test_output import read, values, worker
from tests.server import OwnServer


@over_each_fault
async def test_values_are_stored_once_though_replies_are_lost(
    client: Client,
    proxied_client: Client,  # noqa: F811
    proxy: Proxy,  # noqa: F811
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


@job(output_ttl=600)
async def talk(job: Job, to: int) -> None:
    for number in range(to):
        job.emit(f"{number} {'x' * 100}")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("jobs", "readers"), [(10, 3), pytest.param(100, 10, marks=pytest.mark.long)]
)
async def test_many_readers_get_everything_and_memory_returns(
    own_server: OwnServer, until: Until, jobs: int, readers: int
) -> None:
    expected = [f"{number} {'x' * 100}" for number in range(200)]
    async with Client(own_server.url) as client, Client(own_server.url) as site:

        async def memory() -> int:
            """Return the memory of all keys: unlike Redis' own figures, without buffers."""
            keys = [key async for key in client.redis.scan_iter()]
            return sum([await client.redis.memory_usage(key, 0) or 0 for key in keys])

        async def run_all(to: int) -> int:
            """Run the jobs, compare what readers get, and return how much memory is used then."""
            jids = [await client.queue("default").put(talk.data(to=to)) for _ in range(jobs)]
            reading = [asyncio.create_task(read(site, jid)) for jid in jids for _ in range(readers)]
            async with worker(client, talk, concurrency=jobs):
                for task in reading:
                    assert values(await task) == expected[:to]
            return await memory()

        async def expire_outputs() -> None:
            for key in [key async for key in client.redis.scan_iter("*:x:output:*")]:
                assert 0 < await client.redis.ttl(key) <= 600
                await client.redis.delete(key)

        before = await run_all(0)
        high = await run_all(200)
        assert high > before + jobs * 20_000
        await expire_outputs()

        # But for the completed jobs; the answers that are kept for calls which a busy machine has
        # sent again expire after two minutes.
        async def is_back() -> bool:
            return await memory() < before + jobs * 4_000

        await until(is_back, 180)
