"""Workers that are killed, stopped and ended, and a ledger of what they have done."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from aioqless import Client
from aioqless.client.job import JobState
from tests.conftest import Until, existing_job
from tests.contrib.durable import programs
from tests.contrib.durable.forking import ForkedProcess

Start: TypeAlias = Callable[..., AbstractAsyncContextManager[ForkedProcess]]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


@pytest.fixture
def start(redis_url: str, namespace: str, ledger: Path) -> Start:
    """Start a worker process, and kill it at the end of the block."""
    command = ["worker", programs.__name__, "--url", redis_url, "--namespace", namespace]
    command += ["--queue", "mail", "--poll", "0.05"]

    @asynccontextmanager
    async def start(*options: str) -> AsyncIterator[ForkedProcess]:
        process = ForkedProcess([*command, *options], ledger)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    return start


def lines(ledger: Path) -> Counter[str]:
    return Counter(ledger.read_text().split("\n")[:-1])


def size(ledger: Path) -> int:
    return ledger.stat().st_size


@pytest.mark.parametrize("deaths", [[0, 7, 19], pytest.param([*range(20)], marks=pytest.mark.long)])
async def test_worker_killed_between_effect_and_store_repeats_this_effect_alone(
    client: Client, start: Start, ledger: Path, until: Until, deaths: list[int]
) -> None:
    jid = await client.put(programs.twenty.data(deaths=deaths))
    for _ in deaths:
        async with start() as worker:
            assert await asyncio.wait_for(worker.wait(), 60) == -signal.SIGKILL
        await client.jobs.unlock(jid)  # rather than wait for its lock
    async with start():
        assert (await client.jobs.wait(jid, 60)).state == JobState.COMPLETE
    expected = {str(number): 1 + (number in deaths) for number in range(20)}
    assert lines(ledger) == {**expected, f"end {sum(range(20))}": 1}
    assert await client.jobs.steps(jid) == []


async def test_worker_suspended_beyond_its_lock_stores_no_step(
    client: Client, start: Start, ledger: Path, until: Until
) -> None:
    await client.config.set("heartbeat", 2)
    await client.config.set("grace-period", 0)
    jid = await client.put(programs.suspended.data())
    async with start() as first:
        await until(lambda: lines(ledger)["effect 1"])
        first.send_signal(signal.SIGSTOP)
        async with start():
            assert (await client.jobs.wait(jid, 60)).state == JobState.COMPLETE
            first.send_signal(signal.SIGCONT)
            await until(lambda: lines(ledger)["lost"])
    assert lines(ledger) == {"effect 1": 1, "effect 2": 1, "lost": 1, "end 2": 1}


@pytest.mark.parametrize("signals", [5, pytest.param(500, marks=pytest.mark.long)])
async def test_each_item_of_a_cursor_is_done_once_however_often_workers_are_ended(
    client: Client, start: Start, ledger: Path, until: Until, signals: int
) -> None:
    jid = await client.put(programs.items.data())
    for number in range(signals):
        async with start() as worker:
            begun = size(ledger)
            await until(lambda: size(ledger) > begun + 50, 60)  # noqa: B023
            worker.terminate()
            assert await asyncio.wait_for(worker.wait(), 60) == 0
        assert (await existing_job(client, jid)).state == JobState.WAITING, number
    ledger.with_name("enough").touch()
    async with start():
        job = await client.jobs.wait(jid, 60)
    assert (job.state, job.remaining) == (JobState.COMPLETE, 100)
    done = lines(ledger)
    count = len(done) - 1
    assert count > 10 * signals
    assert done == {**{str(number): 1 for number in range(count)}, "end": 1}


def paths_of(seed: int, path: str = "") -> list[str]:
    """Return the nodes of a random tree."""
    below = (f"{path}/{number}" for number in range(programs.count_children(path, seed)))
    return [path, *(each for child in below for each in paths_of(seed, child))]


@pytest.mark.parametrize("trees", [5, pytest.param(300, marks=pytest.mark.long)])
async def test_trees_of_calls_end_whatever_dies(
    client: Client, start: Start, ledger: Path, trees: int
) -> None:
    jids = [await client.put(programs.node.data(path="", seed=seed)) for seed in range(trees)]

    async def all_end() -> None:
        for jid in jids:
            assert (await client.jobs.wait(jid, 3600)).state == JobState.COMPLETE

    ends = asyncio.create_task(all_end())

    async def keep_worker(number: int) -> None:
        for start_number in itertools.count():
            if ends.done():
                return
            # The name of a killed worker is taken until its heartbeat expires.
            name = f"worker-{number}-{start_number}"
            options = ("--concurrency", "1", "--park-after", "0", "--name", name)
            async with start(*options) as worker:
                died = asyncio.create_task(worker.wait())
                await asyncio.wait([ends, died], return_when=asyncio.FIRST_COMPLETED)
            for jid in await client.queue("mail").jids("running"):
                job = await client.jobs.get(jid)
                if job is not None and job.worker == name:
                    await client.jobs.unlock(jid)  # rather than wait for its lock

    await asyncio.gather(*(keep_worker(number) for number in range(4)))
    await ends
    done = lines(ledger)
    expected = {f"{seed} effect {path}" for seed in range(trees) for path in paths_of(seed)}
    assert {line for line in done if " effect " in line} == expected
    for line in expected:
        assert done[line] == 1 + done[line.replace(" effect ", " died in ")], line
