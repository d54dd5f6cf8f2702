"""Restarting a worker under a stable name, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from aioqless import Client
from tests.cli.conftest import Aioqless, Start
from tests.cli.test_worker import state_of
from tests.conftest import Until

NAMED = ("--name", "ann")


async def test_jobs_of_a_killed_worker_run_again_at_once_under_the_same_name(
    client: Client, start: Start, until: Until
) -> None:
    for jid in "ab":
        await client.queue("mail").put("Stay", jid=jid, retries=1)
    async with start(*NAMED, "-c", "2") as first:
        await until(lambda: len(first.logged("job.started")) == 2)
        first.process.kill()
        await first.process.wait()
        began = time.monotonic()
        async with start(*NAMED) as second:
            await until(lambda: len(second.logged("job.started")) == 2)
            assert time.monotonic() - began < 40, "a lock lasts 60 seconds"
            assert second.logged("worker.recovered")[0]["jobs"] == 2
            again = await client.jobs.get("a")
            assert again and (again.worker, again.remaining) == ("ann", 1)
            assert [event["what"] for event in again.events] == [
                "put",
                "popped",
                "released",
                "popped",
            ]


async def test_jobs_of_a_killed_worker_run_again_within_seconds_in_another(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Stay", jid="a", retries=1)
    async with start() as first:
        await until(lambda: first.logged("job.started"))
        async with start() as second:
            first.process.send_signal(signal.SIGSTOP)
            async with start():
                assert not second.logged("job.started"), "it isn't known to have ended"
            first.process.kill()
            await until(lambda: second.logged("job.started"))
            await until(lambda: 1 in [line["jobs"] for line in second.logged("worker.recovered")])
            job = await client.jobs.get("a")
            assert job and job.remaining == 1


async def test_zombie_process_counts_as_ended(client: Client, start: Start, until: Until) -> None:
    await client.queue("mail").put("Stay", jid="a")
    async with start(*NAMED) as first:
        await until(lambda: first.logged("job.started"))
        os.kill(
            first.process.pid, signal.SIGKILL
        )  # it stays a zombie: its exit code is not read before the next start
        async with start(*NAMED) as second:
            await until(lambda: second.logged("job.started"))


@pytest.mark.parametrize("stopped", [False, True])
async def test_second_worker_of_a_name_is_refused_even_if_the_first_is_suspended(
    client: Client, start: Start, until: Until, aioqless: Aioqless, stopped: bool
) -> None:
    await client.queue("mail").put("Stay", jid="a")
    async with start(*NAMED) as first:
        await until(lambda: first.logged("job.started"))
        if stopped:
            first.process.send_signal(signal.SIGSTOP)
        ended = await aioqless("worker", "jobs", "-q", "mail", *NAMED)
        assert ended.code == 1
        assert (
            f"the name 'ann' belongs to process {first.process.pid} on " in ended.err
            and "stop that worker, or give this one another" in ended.err
        )
        assert await state_of(client, "a") == "running"


async def test_worker_that_shut_down_frees_its_name(
    client: Client, start: Start, until: Until
) -> None:
    async with start(*NAMED) as first:
        first.process.terminate()
        assert await first.ended() == 0
    assert await client.redis.keys(f"{client.namespace}:x:name-lease:*") == []
    async with start(*NAMED) as second:
        assert not second.logged("worker.recovered")


async def test_workers_with_generated_names_store_no_lease(
    client: Client, start: Start, until: Until
) -> None:
    async with start():
        assert await client.redis.keys(f"{client.namespace}:x:name-lease:*") == []


async def test_one_of_many_workers_started_at_once_gets_the_name(
    client: Client, aioqless: Aioqless, start: Start, until: Until
) -> None:
    async with start(*NAMED):
        refused = await asyncio.gather(*(aioqless("worker", "jobs", *NAMED) for _ in range(3)))
    assert {ended.code for ended in refused} == {1}
