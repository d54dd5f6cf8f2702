"""Threads and processes combined with draining, timeouts, middleware, resources and retention."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aioqless import (
    AioqlessError,
    Client,
    Fail,
    Inject,
    Job,
    Key,
    Retry,
    Settings,
    Worker,
    job,
    middleware,
    on_finish,
    resource,
)
from aioqless.handlers import CallNext
from aioqless.testing import drain
from tests.combinations import in_processes
from tests.combinations.conftest import existing_job, states
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


def there(path: str) -> bool:
    return Path(path).exists()


def told(folder: Path) -> str:
    return (folder / "told").read_text()


async def test_drain_waits_for_threads_and_for_jobs_that_they_put(client: Client) -> None:
    ran: list[str] = []

    @job(klass="Blocking")
    def blocking(job: Job[Any]) -> None:
        threading.Event().wait(0.05)  # longer than an empty pop takes
        ran.append(job.jid)

    @job(klass="After")
    async def after(job: Job[Any]) -> None:
        ran.append(job.jid)

    await client.queue("default").put(blocking, jid="a")
    await client.queue("default").put(after, jid="b", depends=["a"])
    await drain(client, blocking, after, concurrency=5)
    assert ran == ["a", "b"]


async def test_drain_ends_the_processes_it_started(client: Client) -> None:
    jid = await client.queue("default").put(in_processes.tell)
    await drain(client, in_processes)
    pid = int((await client.jobs.result(jid)).split()[1])
    assert not there(f"/proc/{pid}")


async def test_job_of_a_thread_that_stops_is_released_and_frees_its_key(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Pages")
    def pages(job: Job[Any]) -> None:
        while True:
            job.raise_if_stopped()
            threading.Event().wait(0.005)

    await client.queue("mail").put(
        pages, jid="a", limit_key=Key("k"), max_concurrency=1, unique=Key("k")
    )
    async with work(pages, shutdown_timeout=0):
        await until(lambda: lines.of("job.started"))
    (again,) = await client.queue("mail").pop()
    assert (again.jid, again.remaining, await client.queue("mail").put(pages, unique=Key("k"))) == (
        "a",
        5,
        "a",
    )


async def test_timed_out_coroutine_in_a_process_leaves_no_scratch_directory(
    client: Client, work: Work, until: Until, lines: Lines, tmp_path: Path
) -> None:
    await client.queue("mail").put(in_processes.unpack, {"folder": str(tmp_path)})
    async with work(in_processes.unpack, processes=1):
        await until(lambda: lines.of("job.failed", group="mail-timeout"))
    assert not there(told(tmp_path))


async def test_middleware_runs_in_the_worker_around_a_process_handler(
    client: Client, work: Work
) -> None:
    @middleware
    async def tenant(job: Job[Any], call: CallNext) -> Any:
        in_processes.TENANT.set("Ann")
        return (await call()).split()[0]

    await client.queue("mail").put(in_processes.tell, jid="a")
    async with work(in_processes.tell, tenant, processes=1):
        assert await (await existing_job(client, "a")).outcome(timeout=60) == "Ann"


async def test_process_handler_with_a_resource_is_refused(
    client: Client,
) -> None:
    @resource
    async def pool() -> AsyncIterator[int]:
        yield 1

    @job(klass="Take", executor="process")
    def take(job: Job[Any], pool: int = Inject) -> None: ...

    with pytest.raises(
        ValueError,
        match="Take is to run in a process, where the worker's resources can't be injected: pool",
    ):
        Worker(client, take, pool)
    with pytest.raises(AioqlessError, match="no @resource of this worker opens one"):
        Worker(client, take)


async def test_finish_hook_is_called_once_when_retries_of_any_kind_are_exhausted(
    client: Client, work: Work, until: Until
) -> None:
    heard: list[tuple[str, str, bool]] = []

    @on_finish("job.failed", "job.retried")
    async def hook(
        job: Job[Any], end: str, *, group: str = "", exhausted: bool = False, **more: Any
    ) -> None:
        heard.append((job.jid, group, exhausted))

    @job(klass="Asks")
    async def asks(job: Job[Any]) -> None:
        raise Retry(delay=0)

    @job(klass="Raises", retry_on=(OSError,), backoff=lambda used: 0)
    def raises(job: Job[Any]) -> None:
        raise OSError

    @job(klass="Fails")
    async def fails(job: Job[Any]) -> None:
        raise Fail("by-itself", group="by-itself")

    for handler in (asks, raises, fails):
        await client.queue("mail").put(handler, jid=handler.klass, retries=1)
    async with work(asks, raises, fails, hook):
        await until(lambda: len(heard) == 5)
    assert sorted(each for each in heard if each[1]) == [
        ("Asks", "failed-retries-mail", True),
        ("Fails", "by-itself", False),
        ("Raises", "mail-OSError", True),
    ]


async def test_hook_that_moves_the_failed_job_leaves_a_consistent_queue(
    client: Client, work: Work, until: Until
) -> None:
    @on_finish("job.failed")
    async def set_aside(job: Job[Any], end: str, **fields: Any) -> None:
        await job.move("later")

    @job(klass="Fails", unique=Key("k"), limit_key=Key("k"), max_concurrency=1)
    async def fails(job: Job[Any]) -> None:
        raise Fail("by-itself", group="by-itself")

    await client.queue("mail").put(fails, jid="a")
    async with work(fails, set_aside):
        await until(lambda: client.queue("later").length())
    assert await client.queue("mail").put(fails, jid="b") == "a"
    assert await client.jobs.failed_counts() == {}


async def test_failed_dependency_is_kept_beyond_its_retention_while_it_has_dependents(
    client: Client,
) -> None:
    await client.config.set("failed-history", 0)
    mail = client.queue("mail")
    await mail.put("Fails", jid="a")
    await mail.put("Good", jid="b", depends=["a"])
    await mail.put("Fails", jid="c", unique=Key("k"), limit_key=Key("k"), max_concurrency=1)
    for failing in await mail.pop(2):
        await failing.fail("it is", group="broken")
    assert await states(client, "a", "b", "c") == ["failed", "depends", None]
    assert await mail.put("Fails", jid="d", unique=Key("k")) == "d"
    await client.jobs.cancel("a", "b", "d")


@pytest.mark.parametrize("in_time", [True, False])
async def test_thread_that_returns_during_shutdown_has_its_own_outcome(
    client: Client, work: Work, until: Until, lines: Lines, in_time: bool
) -> None:
    ends = threading.Event()

    @job(klass="Blocking")
    def blocking(job: Job[Any]) -> None:
        ends.wait(60)

    await client.queue("mail").put(blocking, jid="a")
    async with work(blocking, shutdown_timeout=5 if in_time else 0) as worker:
        await until(lambda: lines.of("job.started"))
        worker.stop()
        if not in_time:
            await until(lambda: _stopped(worker))
        ends.set()
    assert await states(client, "a") == ["complete"]


def _stopped(worker: Worker) -> bool:
    return any(run.stopped_by == "shutdown" for run in worker._shared.running.by_jid.values())


async def test_incompatible_options_are_refused_by_name(client: Client) -> None:
    for options, why in (
        ({"unique_until": "started"}, "need unique, which is the key"),
        ({"max_concurrency": 0}, "max_concurrency must be an integer from 1"),
        ({"limit_key": Key("k")}, "needs max_concurrency or rate_limit"),
        ({"unique": Key("k"), "unique_for": 5, "unique_until": "done"}, "mutually exclusive"),
        ({"every": 60, "cron": "* * * * *"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "31"),
    ):
        with pytest.raises((TypeError, ValueError), match=why):
            job(klass="Wrong", **options)(lambda job: None)
    with pytest.raises(AioqlessError):
        Worker(
            client,
            job(klass="Same")(lambda job: None),
            job(klass="Same")(lambda job: 1),
            settings=Settings(),
        )


async def test_many_jobs_of_every_kind_leave_a_consistent_namespace(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(
        klass="Coroutine",
        retry_on=(OSError,),
        backoff=lambda used: 0,
        unique=("n",),
        limit_key=Key("all"),
        max_concurrency=3,
        result_ttl=60,
    )
    async def coroutine(job: Job[Any], n: int) -> int:
        await asyncio.sleep(0)
        if n % 3 == 0 and job.remaining == job.retries:
            raise OSError
        return n

    @job(klass="Thread", limit_key=Key("all"), max_concurrency=3)
    def thread(job: Job[Any], n: int) -> None:
        if n % 5 == 0:
            raise ValueError

    for n in range(30):
        first = await client.queue("mail").put(coroutine.data(n=n), priority=n % 4)
        await client.queue("mail").put(
            thread.data(n=n), depends=[first], if_dependency_fails="fail"
        )
    async with work(coroutine, thread, concurrency=8):
        await until(lambda: len(lines.of("job.completed")) == 54)
        await until(lambda: len(lines.of("job.failed")) == 6)
    assert await client.jobs.failed_counts() == {"mail-ValueError": 6}
