"""Output over connections that fail, and its expiry."""

from __future__ import annotations

import asyncio

from aioqless import Client, Job, job
from aioqless.contrib.output import Ended
from tests.client.conftest import proxied_client, proxy  # noqa: F401  # fixtures
from tests.client.proxy import Proxy
from tests.client.proxy_faults import Fault, over_each_fault
from tests.conftest import Until
from tests.contrib.output.test_output import read, values, worker


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
