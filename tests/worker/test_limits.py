"""Concurrency limits and rate limits across workers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from typing import Any

import pytest

from aioqless import Client, Job, Limit, NewJob, Throttled, job
from tests.conftest import Until
from tests.worker.conftest import Idle, Work

runs: list[tuple[str, float, float]] = []
going: set[str] = set()
concurrency: list[int] = []  # at the start of each run


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    runs.clear()
    going.clear()
    concurrency.clear()


@job(klass="Visit")
async def visit(job: Job[Any]) -> None:
    going.add(job.jid)
    concurrency.append(len(going))
    began = time.monotonic()
    await asyncio.sleep(0.02)
    going.discard(job.jid)
    runs.append((job.jid, began, time.monotonic()))


async def test_two_workers_run_jobs_of_a_key_one_at_a_time_in_order_without_delay(
    client: Client, work: Work, until: Until
) -> None:
    jids = [f"a{n:02}" for n in range(20)]
    await client.queue("mail").put_many(
        NewJob(visit, jid=jid, limits=[Limit("k", max_concurrency=1)]) for jid in jids
    )
    await client.queue("mail").put(visit, jid="free")
    async with (
        Client(client.url, namespace=client.namespace) as other,
        work(visit),
        work(visit, using=other),
    ):
        await until(lambda: len(runs) == 21)
    limited = [run for run in runs if run[0] != "free"]
    assert [run[0] for run in limited] == jids
    assert all(later[1] >= earlier[2] for earlier, later in itertools.pairwise(limited))
    assert runs.index(next(run for run in runs if run[0] == "free")) < 5


@pytest.mark.parametrize("of", ["key", "queue"])
async def test_rate_limited_job_starts_as_soon_as_the_limit_allows(
    client: Client, work: Work, until: Until, idle: Idle, of: str
) -> None:
    if of == "queue":
        await client.config.set("mail-rate-limit", "2/0.5")
    async with work(visit) as worker:
        await idle(worker)
        limits = [Limit("k", rate=(2, 0.5))] if of == "key" else []
        await client.queue("mail").put_many(NewJob(visit, limits=limits) for _ in range(6))
        await until(lambda: len(runs) == 6)  # a poll is 90 s away
    popped = sorted(
        event["when"]
        for each in await client.jobs.multiget(*(run[0] for run in runs))
        for event in each.events
        if event["what"] == "popped"
    )
    assert all(later - earlier > 0.49 for earlier, later in zip(popped, popped[2:], strict=False))


API = Limit("api", rate=(1000, 60))


async def test_no_job_of_a_limit_starts_from_when_a_pause_is_stored_until_it_ends(
    client: Client, work: Work, until: Until
) -> None:
    """20 workers get the answer 429, as from an API that is overloaded."""
    refused: list[str] = []
    done: list[str] = []

    @job(klass="Ask", limits=[API])
    async def ask(job: Job[Any]) -> None:
        if len(refused) < 20:
            refused.append(job.jid)
            raise Throttled(API, 1)
        done.append(job.jid)

    jids = await client.queue("mail").put_many(NewJob(ask) for _ in range(60))
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(20):
            other = await stack.enter_async_context(Client(client.url, namespace=client.namespace))
            await stack.enter_async_context(work(ask, using=other, concurrency=2))
        await until(lambda: len(done) == 60)
    jobs = await client.jobs.multiget(*jids)
    events = [event for each in jobs for event in each.events]
    pauses = [event["when"] for event in events if event["what"] == "released"]
    assert len(pauses) == 20
    starts = [event["when"] for event in events if event["what"] == "popped"]
    assert not [at for at in starts for pause in pauses if pause + 0.001 < at < pause + 0.999]
    assert {each.remaining for each in jobs} == {5}


TOKENS = Limit("tokens", rate=(100, 3600), cost="tokens")


async def test_runs_on_the_loop_and_in_threads_charge_what_they_have_used(
    client: Client, work: Work, until: Until
) -> None:
    charged: list[object] = []

    @job(klass="Ask", limits=[TOKENS])
    async def ask(job: Job[Any], tokens: int) -> None:
        charged.append(await job.charge(TOKENS, 10))

    @job(klass="Read", limits=[TOKENS])
    def read(job: Job[Any], tokens: int) -> None:
        charged.append(job.charge(TOKENS, 20))

    for each in (ask.data(tokens=90), read.data(tokens=90), ask.data(tokens=70)):
        await client.queue("mail").put(each)
    last = await client.queue("mail").put(ask.data(tokens=81))
    async with work(ask, read):
        await until(lambda: len(charged) == 3)
    assert charged == [True] * 3
    held = (await client.jobs.multiget(last))[0].held_back
    assert held is not None
    assert (held.key, held.used, held.cost) == ("tokens", 40, 81)
    assert held.reason == "limit of key tokens: 40 of 100 in 3600 s are used, this job costs 81"
