"""Workers that are killed and connections that fail while jobs emit: readers get the same text."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from aioqless import Client, Job, job
from aioqless.contrib.output import Emitted, Ended, Missed, Output, Restarted
from tests.client.conftest import proxied_client, proxy  # noqa: F401  # fixtures
from tests.client.proxy import Proxy
from tests.client.proxy_faults import Fault, over_each_fault
from tests.conftest import Until
from tests.contrib.output import programs
from tests.contrib.output.test_output import read, values, worker
from tests.server import OwnServer

ROOT = Path(__file__).parents[3]


class Page:
    """What a browser shows of an output."""

    def __init__(self) -> None:
        self.text = ""
        self.after: str | None = None
        self.ended = False
        self.restarts = 0

    def show(self, output: Output) -> None:
        self.after = output.id
        match output:
            case Emitted(value=value):
                self.text += value
            case Restarted():
                self.text = ""
                self.restarts += 1
            case Ended():
                self.ended = True
            case Missed():
                raise AssertionError(output)

    async def follow(self, client: Client, jid: str, *, reload: bool = False) -> None:
        """Show the output to its end; `reload`: connect again after each item."""
        while not self.ended:
            async with aclosing(client.jobs.output(jid, after=self.after)) as output:
                async for each in output:
                    self.show(each)
                    if reload:
                        break


@pytest.mark.long
async def test_pages_show_the_same_text_though_workers_are_killed(
    client: Client, redis_url: str, until: Until
) -> None:
    command = [
        *(sys.executable, "-m", "aioqless", "worker", "tests.contrib.output.programs"),
        *("--url", redis_url, "--namespace", client.namespace, "--queue", "mail"),
        *("--poll", "0.05"),
    ]
    jid = await client.put(programs.speak.data())
    pages = [Page(), Page()]
    following = [
        asyncio.create_task(page.follow(client, jid, reload=reload))
        for page, reload in zip(pages, (False, True), strict=True)
    ]
    for length in (100, 300, None):
        seen = len(pages[0].text), pages[0].restarts
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        try:
            if length is None:
                await asyncio.wait_for(asyncio.gather(*following), 60)
            else:
                fresh = seen[1] + (seen[0] > 0)
                await until(
                    lambda: pages[0].restarts >= fresh and len(pages[0].text) > length,  # noqa: B023
                    60,
                )
        finally:
            process.kill()
            await process.wait()
        if length is not None:
            await client.jobs.unlock(jid)  # rather than wait for its lock
    late = Page()
    await late.follow(client, jid)
    assert [page.text.strip() for page in (*pages, late)] == [programs.TEXT.strip()] * 3
    assert pages[0].restarts == 2


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
