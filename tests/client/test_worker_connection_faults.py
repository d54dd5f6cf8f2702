"""Pops whose replies were lost, and runs of a worker that has lost its lock."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Job, LockLost, Settings, Worker, WrongState, job
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


async def test_lock_lost_is_raised_by_fence_even_for_the_same_worker_name(client: Client) -> None:
    """The fence also refuses an earlier run of a worker with the same name."""
    await client.queue("mail").put("Greet", jid="a")
    (first,) = await client.queue("mail").pop(worker="twin")
    await client.jobs.unlock("a")
    with pytest.raises(WrongState, match="the job is not running"):
        await first.heartbeat()
    (second,) = await client.queue("mail").pop(worker="twin")
    assert second.fence > first.fence
    for verb in (first.heartbeat, first.complete, first.retry, first.release):
        with pytest.raises(LockLost) as lost:
            await verb()
        assert lost.value.holder == "twin" and lost.value.jid == "a"
    with pytest.raises(LockLost):
        await first.fail("x", group="typo")
    assert await second.complete() == "complete"
