"""Workers over broken, stalled and slow connections: each job runs once."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Job, LockLost, Settings, Worker, WrongState, job
from aioqless.store import ATTEMPTS
from aioqless.store.script_composer import compose
from tests.client.proxy import Proxy
from tests.client.proxy_faults import Fault, over_each_fault
from tests.conftest import Until
from tests.worker.conftest import Lines, lines

__all__ = ["lines"]


@over_each_fault
async def test_worker_runs_each_job_once_despite_connection_faults(
    client: Client,
    proxied_client: Client,
    proxy: Proxy,
    fault: Fault,
    until: Until,
    lines: Lines,
) -> None:
    ran: list[str] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.jid)
        if len(ran) % 3 == 0:
            fault(proxy)

    for number in range(12):
        await client.queue("mail").put(greet, jid=f"j{number}")
    async with Worker(
        proxied_client, greet, settings=Settings(queues=("mail",), concurrency=2, poll=0.05)
    ):
        await until(lambda: client.jobs.complete_jids(count=100))
        await until(lambda: len(lines.of("job.completed")) == 12)
    assert sorted(ran) == sorted(f"j{number}" for number in range(12))
    assert not [
        line
        for line in lines.all
        if line["event"] in ("job.lock_lost", "job.refused", "job.outcome_dropped")
    ]


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
