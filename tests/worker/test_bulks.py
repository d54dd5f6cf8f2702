"""Bulk handlers: a worker collects jobs, and each keeps its own lock, retries and result."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aioqless import (
    AioqlessError,
    CallNext,
    Client,
    Fail,
    Inject,
    Job,
    JobFailed,
    NewJob,
    Retry,
    Snooze,
    bulk_job,
    job,
    middleware,
    resource,
)
from aioqless.contrib.output import Emitted
from aioqless.testing import Clock
from tests.conftest import Until
from tests.worker import in_processes
from tests.worker.conftest import Lines, Work
from tests.worker.states import after, state_of


@dataclass
class Row:
    number: int
    kind: str = "row"


class Pool(str):
    __slots__ = ()


class Rows:
    """A handler that waits until it is released, and the calls that it got."""

    def __init__(self, **options: Any) -> None:
        self.calls: list[list[Job[Row]]] = []
        self.canceled = 0
        self.end = asyncio.Event()
        given = {"klass": "Rows", "queue": "mail", "size": 3, "within": 30, **options}
        self.handler: Any = bulk_job(**given)(self._take)

    async def _take(self, jobs: list[Job[Row]]) -> None:
        self.calls.append(jobs)
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.canceled += 1
            raise

    @property
    def numbers(self) -> list[list[int]]:
        return [[job.data.number for job in jobs] for jobs in self.calls]


async def put(client: Client, handler: Any, count: int, **options: Any) -> list[str]:
    """Put jobs with the numbers 0, 1, ..."""
    return [await client.put(handler.data(Row(n)), **options) for n in range(count)]


# Calls


async def test_full_bulk_is_taken_at_once_and_the_rest_after_within(
    redis_url: str, namespace: str, work: Work, until: Until, lines: Lines
) -> None:
    rows, clock = Rows(within=30), Clock()
    rows.end.set()
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        for n in range(4):
            await client.put(rows.handler.data(Row(n)))
            clock.move(0.001)
        async with work(rows.handler, using=client, poll=0.05):
            await until(lambda: len(lines.of("job.completed")) == 3)
            assert rows.numbers == [[0, 1, 2]]
            clock.move(30)
            await until(lambda: len(lines.of("job.completed")) == 4)
    assert rows.numbers == [[0, 1, 2], [3]]
    assert [line["jobs"] for line in lines.of("bulk.started")] == [3, 1]
    assert len(lines.of("outcomes.stored", jobs=3)) == 1


async def test_bulk_is_one_slot_and_its_jobs_have_locks_of_their_own(
    client: Client, work: Work, until: Until
) -> None:
    rows = Rows()
    single_ran = asyncio.Event()

    @job(klass="Single")
    async def single(job: Job[Any]) -> None:
        single_ran.set()

    async with work(rows.handler, single, concurrency=2) as worker:
        jids = await put(client, rows.handler, 3)
        await until(lambda: rows.calls)
        assert sorted(worker.running) == sorted(jids)
        await client.queue("mail").put(single)
        await single_ran.wait()
        fences = [(await client.jobs.get(jid)).fence for jid in jids]
        assert len(set(fences)) == 3
        rows.end.set()
        await until(lambda: not worker.running)


# Outcomes


async def test_each_job_has_its_own_outcome(client: Client, work: Work, until: Until) -> None:
    @bulk_job(klass="Rows", queue="mail", size=5, within=30, retries=1, result_ttl=60)
    async def take(jobs: list[Job[Row]]) -> list[int | Exception]:
        outcomes: list[int | Exception] = [
            7,
            Retry("later", delay=60),
            Snooze(60),
            Fail("no", group="refused"),
            ValueError("broken"),
        ]
        return [outcomes[job.data.number] for job in jobs]

    async with work(take):
        jids = await put(client, take, 5)
        assert await client.jobs.result(jids[0], timeout=20) == 7
        retried = await after(client, until, jids[1], "scheduled")
        assert retried.remaining == 0
        snoozed = await after(client, until, jids[2], "scheduled")
        assert snoozed.remaining == 1
        for jid, group in ((jids[3], "refused"), (jids[4], "mail-ValueError")):
            failed = await after(client, until, jid, "failed")
            assert failed.failure is not None and failed.failure.group == group


async def test_exception_is_the_outcome_of_all(client: Client, work: Work, until: Until) -> None:
    calls: list[int] = []

    @bulk_job(
        klass="Rows", queue="mail", size=3, within=30, retries=1, retry_on=ConnectionError,
        backoff=lambda *_: 0.0,
    )  # fmt: skip
    async def take(jobs: list[Job[Row]]) -> None:
        calls.append(len(jobs))
        raise ConnectionError("away")

    async with work(take, poll=0.1):
        jids = await put(client, take, 3)
        for jid in jids:
            failed = await after(client, until, jid, "failed")
            assert failed.failure is not None
            assert [event["what"] for event in failed.events].count("popped") == 2
    assert calls == [3, 3]


@pytest.mark.parametrize(
    ("returned", "said"), [([1], "1 outcomes"), ("three", "str, not a list"), (5, "int")]
)
async def test_wrong_outcomes_fail_all_loudly(
    client: Client, work: Work, until: Until, lines: Lines, returned: Any, said: str
) -> None:
    @bulk_job(klass="Rows", queue="mail", size=3, within=30)
    async def take(jobs: list[Job[Row]]) -> Any:
        return returned

    async with work(take):
        for jid in await put(client, take, 3):
            failed = await after(client, until, jid, "failed")
            assert failed.failure is not None
            assert failed.failure.group == "mail-outcomes" and said in failed.failure.message
    assert len(lines.of("job.failed", group="mail-outcomes")) == 3


async def test_job_with_wrong_data_fails_alone(client: Client, work: Work, until: Until) -> None:
    rows = Rows(size=2)
    rows.end.set()
    async with work(rows.handler):
        wrong = await client.queue("mail").put("Rows", {"number": "many"})
        jids = await put(client, rows.handler, 2)
        assert (await after(client, until, wrong, "failed")).failure
        for jid in jids:
            await after(client, until, jid, "complete")
    assert rows.numbers == [[0, 1]]


async def test_timeout_fails_all(client: Client, work: Work, until: Until) -> None:
    rows = Rows(timeout=0.3)
    async with work(rows.handler):
        for jid in await put(client, rows.handler, 3):
            failed = await after(client, until, jid, "failed")
            assert failed.failure is not None and failed.failure.group == "mail-timeout"
        await until(lambda: rows.canceled == 1)


async def test_changed_data_and_output_are_each_jobs_own(
    client: Client, work: Work, until: Until
) -> None:
    @bulk_job(klass="Rows", queue="mail", size=2, within=30)
    async def take(jobs: list[Job[Any]]) -> None:
        for each in jobs:
            each.emit(each.data["number"])
            each.data["seen"] = True

    async with work(take):
        jids = [await client.queue("mail").put(take, {"number": n}) for n in range(2)]
        for n, jid in enumerate(jids):
            assert (await after(client, until, jid, "complete")).data["seen"]
            output = [
                each.value
                async for each in client.jobs.output(jid, follow=False)
                if isinstance(each, Emitted)
            ]
            assert output == [n]


async def test_steps_are_refused_with_a_sentence(client: Client, work: Work, until: Until) -> None:
    errors: list[str] = []
    uses: list[Callable[[Job[Any]], Any]] = [
        lambda job: job.step("a", dict),
        lambda job: job.wait_for("a"),
        lambda job: job.sleep("a", 1),
        lambda job: job.call("a", NewJob("Other", {})),
    ]

    @bulk_job(klass="Rows", queue="mail", size=1, within=0)
    async def take(jobs: list[Job[Any]]) -> None:
        for use in uses:
            with pytest.raises(AioqlessError) as error:
                await use(jobs[0])
            errors.append(str(error.value))

    async with work(take):
        await after(client, until, await client.queue("mail").put(take, {}), "complete")
    assert len(errors) == 4
    assert set(errors) == {
        "Rows takes many jobs at once, and can't use steps, cursors, waits and calls: one that "
        "waits would keep the others waiting. Let it put a job that does"
    }


# Jobs that are stopped


async def test_canceled_job_is_ignored_and_the_others_complete(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    rows = Rows()
    async with work(rows.handler):
        jids = await put(client, rows.handler, 3)
        await until(lambda: rows.calls)
        await client.jobs.cancel(jids[0])
        first = next(job for job in rows.calls[0] if job.jid == jids[0])
        await until(lambda: first.stopped == "lost")
        rows.end.set()
        for jid in jids[1:]:
            await after(client, until, jid, "complete")
        await until(lambda: lines.of("job.lock_lost", jid=jids[0]))
    assert await state_of(client, jids[0]) is None
    assert rows.canceled == 0


async def test_handler_is_canceled_when_all_its_jobs_are(
    client: Client, work: Work, until: Until
) -> None:
    rows = Rows()
    async with work(rows.handler) as worker:
        jids = await put(client, rows.handler, 3)
        await until(lambda: rows.calls)
        await client.jobs.cancel(*jids)
        await until(lambda: rows.canceled == 1)
        await until(lambda: not worker.running)


async def test_shutdown_releases_all_and_they_are_taken_together_again(
    client: Client, work: Work, until: Until
) -> None:
    rows = Rows()
    async with work(rows.handler, shutdown_timeout=0.1):
        jids = await put(client, rows.handler, 3)
        await until(lambda: rows.calls)
    for jid in jids:
        assert await state_of(client, jid) == "waiting"
    rows.end.set()
    async with work(rows.handler):
        for jid in jids:
            assert (await after(client, until, jid, "complete")).remaining == 5
    assert rows.numbers == [[0, 1, 2], [0, 1, 2]]


# Others


async def test_middleware_wraps_each_job_and_one_that_it_ends_is_not_taken(
    client: Client, work: Work, until: Until
) -> None:
    rows = Rows()
    rows.end.set()
    seen: list[tuple[int, int]] = []

    @middleware
    async def skip(job: Job[Any], call: CallNext) -> Any:
        if (number := job.data["number"] if isinstance(job.data, dict) else job.data.number) == 1:
            return None
        result = await call()
        seen.append((number, len(job.together)))
        return result

    async with work(rows.handler, skip):
        for jid in await put(client, rows.handler, 3):
            await after(client, until, jid, "complete")
    assert rows.numbers == [[0, 2]] and sorted(seen) == [(0, 2), (2, 2)]


async def test_resources_are_injected_and_context_variables_seen(
    client: Client, work: Work, until: Until
) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="none")
    seen: list[tuple[str, str]] = []

    @resource
    def pool() -> Pool:
        return Pool("pool")

    @middleware
    async def set_tenant(job: Job[Any], call: CallNext) -> Any:
        tenant.set("Acme")
        return await call()

    @bulk_job(klass="Rows", queue="mail", size=2, within=30)
    async def take(jobs: list[Job[Row]], pool: Pool = Inject) -> None:
        seen.append((pool, tenant.get()))

    async with work(take, pool, set_tenant):
        await put(client, take, 2)
        await until(lambda: seen == [("pool", "Acme")])


async def test_plain_function_runs_in_one_thread(client: Client, work: Work, until: Until) -> None:
    threads: list[tuple[str, int]] = []

    @bulk_job(klass="Rows", queue="mail", size=3, within=30, timeout=20)
    def take(jobs: list[Job[Row]]) -> Sequence[int]:
        threads.append((threading.current_thread().name, len(jobs)))
        return [job.data.number for job in jobs]

    async with work(take, threads=1):
        for jid in await put(client, take, 3):
            await after(client, until, jid, "complete")
    assert len(threads) == 1 and threads[0][1] == 3
    assert threads[0][0] != threading.main_thread().name


async def test_bulk_runs_in_one_process(
    client: Client, work: Work, until: Until, tmp_path: Path
) -> None:
    async with work(in_processes.take_rows):
        jids = [
            await client.queue("mail").put(in_processes.take_rows, {"number": n}) for n in range(3)
        ]
        pids = {await client.jobs.result(jid, timeout=30) for jid in jids[:2]}
        assert len(pids) == 1 and os.getpid() not in pids
        with pytest.raises(JobFailed, match="the third"):
            await client.jobs.result(jids[2], timeout=30)
        changed = await client.jobs.get(jids[0])
        assert changed is not None and changed.data == {"number": 0, "seen": 3}
        output = [
            each.value
            async for each in client.jobs.output(jids[1], follow=False)
            if isinstance(each, Emitted)
        ]
        assert output == [1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"size": 0}, ValueError),
        ({"size": 1001}, ValueError),
        ({"within": -1}, ValueError),
        ({"within": 100_000}, ValueError),
        ({"together_by": "kind"}, TypeError),
    ],
)
def test_options_are_checked(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Rows(**options)


def test_functions_that_do_not_take_a_list_are_refused() -> None:
    with pytest.raises(TypeError, match="list of jobs"):

        @bulk_job()  # type: ignore[arg-type]
        async def one(job: Job[Row]) -> None: ...

    with pytest.raises(TypeError, match="takes number: int"):

        @bulk_job()
        async def named(jobs: list[Job[Row]], number: int) -> None: ...

    with pytest.raises(TypeError, match="@bulk_job"):

        @job(size=5)  # type: ignore[call-overload]
        async def single(job: Job[Row]) -> None: ...
