"""Pops whose replies were lost, and runs of a worker that has lost its lock."""

from __future__ import annotations

from typing import Any

from aioqless import Client, Job, Settings, Worker, job
from aioqless.store import ATTEMPTS
from aioqless.store.script_composer import compose
from tests.client.proxy import Proxy
from tests.conftest import Until
from tests.worker.conftest import lines

__all__ = ["lines"]


async def test_jobs_of_a_pop_whose_reply_was_lost_are_run_after_the_outage(
    client: Client, proxied_client: Client, proxy: Proxy, until: Until
) -> None:
    ran: list[tuple[str, int, int]] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append((job.jid, job.fence, job.remaining))

    script = compose("pop_many", client.namespace)
    await client.internals.store.connection.execute("SCRIPT", "LOAD", script.text)
    await client.queue("mail").put(greet, jid="a")
    proxy.about = script.sha.encode()
    proxy.drop = many = 10**6
    async with Worker(proxied_client, greet, settings=Settings(queues=("mail",), poll=0.02)):
        await until(lambda: many - proxy.drop > ATTEMPTS)  # the first call was given up
        assert await client.queue("mail").jids("running") == ["a"] and not ran
        proxy.drop = 0
        await until(lambda: ran)
    assert ran == [("a", 1, 5)]
