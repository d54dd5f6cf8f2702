"""A run ends with the outcome that it had, whatever its exception, its data or its result does."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from aioqless import (
    CallNext,
    Client,
    Fail,
    Handler,
    Job,
    Next,
    Retry,
    Snooze,
    Throttled,
    bulk_job,
    job,
    middleware,
)
from aioqless.client.put_options import Limit
from aioqless.testing import perform, perform_bulk
from tests.conftest import Until
from tests.worker import odd_errors
from tests.worker.conftest import Lines, Work
from tests.worker.odd_errors import ERRORS, VALUES
from tests.worker.states import after

FAST = {"concurrency": 20}


@job(klass="Coroutine", retries=0)
async def coroutine(job: Job[Any], error: str) -> None:
    raise ERRORS[error][0]()


@job(klass="Timed", retries=0, timeout=60)
async def timed(job: Job[Any], error: str) -> None:
    raise ERRORS[error][0]()


@job(klass="Thread", retries=0)
def thread(job: Job[Any], error: str) -> None:
    raise ERRORS[error][0]()


@pytest.mark.parametrize(
    "handler", [coroutine, timed, thread, odd_errors.odd_in_process], ids=lambda each: each.klass
)
async def test_error_that_cannot_be_formatted_fails_its_job_in_the_group_of_its_class(
    client: Client, work: Work, until: Until, handler: Handler[...]
) -> None:
    jids = {
        name: await client.queue("mail").put(handler.data(error=name))
        for name in ERRORS
        if name != "class" or handler is not odd_errors.odd_in_process  # pickle needs __class__
    }
    async with work(handler, **FAST):
        for name, jid in jids.items():
            failed = await after(client, until, jid, "failed")
            assert failed.failure
            assert failed.failure.group == f"mail-{ERRORS[name][1]}", name
            assert failed.remaining == 0, name


async def test_odd_error_keeps_its_place_in_the_code(
    client: Client, work: Work, until: Until
) -> None:
    jid = await client.queue("mail").put(coroutine.data(error="getattr"))
    async with work(coroutine):
        failed = await after(client, until, jid, "failed")
    assert failed.failure
    _, place, *_, name, why = failed.failure.traceback.splitlines()
    assert place.endswith("in coroutine") and name.startswith("Lookup: ")
    assert "raised KeyError: '__notes__'" in why


async def test_odd_error_of_middleware_or_a_backoff_fails_the_job(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @middleware
    async def late(job: Job[Any], call: CallNext) -> Any:
        await call()
        if job.klass == "Fine":
            raise odd_errors.Lookup

    def backoff(used: int) -> float:
        raise odd_errors.Lookup if used == 0 else SystemExit

    @job(klass="Fine", retries=0)
    async def fine(job: Job[Any]) -> None: ...

    @job(klass="Paced", retry_on=OSError, backoff=backoff)
    async def paced(job: Job[Any]) -> None:
        raise OSError("away")

    mail = client.queue("mail")
    jids = [await mail.put(each) for each in (fine, paced)]
    async with work(late, fine, paced) as worker:
        for jid in jids:
            failed = await after(client, until, jid, "failed")
            assert failed.failure and failed.failure.group == "mail-Lookup"
        assert worker.healthy


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_backoff_that_exits_fails_its_job_and_not_the_worker(
    client: Client, work: Work, until: Until, error: type[BaseException]
) -> None:
    def backoff(used: int) -> float:
        raise error

    @job(klass="Paced", retry_on=OSError, backoff=backoff)
    async def paced(job: Job[Any]) -> None:
        raise OSError("away")

    jid = await client.queue("mail").put(paced)
    async with work(paced) as worker:
        failed = await after(client, until, jid, "failed")
        assert worker.healthy
    assert failed.failure and failed.failure.group == f"mail-{error.__name__}"
    assert ("SIGTERM" in failed.failure.traceback) == (error is not asyncio.CancelledError)


# Data that can't be stored


@job(klass="Asks", retries=3)
async def asks(job: Job[Any], value: str, how: str) -> None:
    job.data["kept"] = VALUES[value]()
    if how == "sleep":
        await job.sleep("a while", 3600)
    if how != "return":
        limit = Limit("api", max_concurrency=1)
        raise {"retry": Retry(delay=60), "snooze": Snooze(60), "throttled": Throttled(limit, 60)}[
            how
        ]


@job(klass="AsksTimed", retries=3, timeout=60)
async def asks_timed(job: Job[Any], value: str, how: str) -> None:
    await asks.fn(job, value, how)  # type: ignore[misc]


@pytest.mark.parametrize("handler", [asks, asks_timed], ids=lambda each: each.klass)
async def test_data_that_cannot_be_stored_fails_the_job_however_it_asks_for_another_run(
    client: Client, work: Work, until: Until, handler: Handler[...]
) -> None:
    ways = ("return", "retry", "snooze", "throttled", "sleep")
    jids = {
        (value, how): await client.queue("mail").put(handler.data(value=value, how=how))
        for value, how in itertools.product(VALUES, ways)
    }
    async with work(handler, park_after=0, **FAST):
        for case, jid in jids.items():
            failed = await after(client, until, jid, "failed")
            assert failed.remaining == 3, case
            assert "kept" not in failed.data, case


async def test_data_of_a_process_that_cannot_be_stored_fails_the_job(
    client: Client, work: Work, until: Until
) -> None:
    handler = odd_errors.unstorable_in_process
    jids = [
        await client.queue("mail").put(handler.data(value=value, how=how))
        for value, how in itertools.product(VALUES, ("retry", "snooze"))
    ]
    async with work(handler, **FAST):
        for jid in jids:
            failed = await after(client, until, jid, "failed")
            assert failed.failure and "ProcessDied" not in failed.failure.group


# Elements of a bulk


@pytest.mark.parametrize(
    "outcome",
    [
        asyncio.CancelledError(),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        BaseExceptionGroup("some", [SystemExit()]),
        ValueError,
        asyncio.CancelledError,
        Fail("wrong"),
    ],
    ids=lambda each: f"{type(each).__name__} {getattr(each, '__name__', '')}",
)
@pytest.mark.parametrize("in_thread", [False, True])
async def test_exception_among_the_outcomes_of_a_bulk_is_that_of_its_job(
    client: Client, work: Work, until: Until, outcome: Any, in_thread: bool
) -> None:
    def call(jobs: list[Job[Any]]) -> list[Any]:
        return [None, outcome]

    async def call_async(jobs: list[Job[Any]]) -> list[Any]:
        return [None, outcome]

    rows = bulk_job(klass="Rows", size=2, within=30, retries=0)(call if in_thread else call_async)
    jids = [await client.queue("mail").put(rows, {"n": n}) for n in range(2)]
    async with work(rows) as worker:
        await after(client, until, jids[0], "complete")
        failed = await after(client, until, jids[1], "failed")
        assert worker.healthy
    kind = outcome if isinstance(outcome, type) else type(outcome)
    assert failed.failure and failed.failure.group == f"mail-{kind.__name__}"
    if kind is KeyboardInterrupt:  # ends a test
        return
    first, second = await perform_bulk([rows.data({"n": 0}), rows.data({"n": 1})])
    assert first.error is None and type(second.error) is kind


# Work that was not done


class Numbers:
    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        raise StopIteration


async def _numbers() -> Any:
    yield 1


RETURNED: dict[str, Callable[[], object]] = {
    "generator": lambda: (each for each in "abc"),
    "map": lambda: map(str, "abc"),
    "iterator": Numbers,
    "async generator": _numbers,
    "retry": lambda: Retry(delay=60),
    "retry class": lambda: Retry,
    "snooze": lambda: Snooze(60),
    "fail": lambda: Fail("no"),
    "error": lambda: ValueError("no"),
    "next class": lambda: Next,
}


@job(klass="Returns", retries=0)
async def returns(job: Job[Any], what: str) -> object:
    return RETURNED[what]()


@job(klass="ReturnsInThread", retries=0)
def returns_in_thread(job: Job[Any], what: str) -> object:
    return RETURNED[what]()


@pytest.mark.parametrize("handler", [returns, returns_in_thread], ids=lambda each: each.klass)
async def test_run_that_returns_work_or_an_outcome_fails(
    client: Client, work: Work, until: Until, handler: Handler[...]
) -> None:
    jids = {what: await client.queue("mail").put(handler.data(what=what)) for what in RETURNED}
    async with work(handler, **FAST):
        for what, jid in jids.items():
            failed = await after(client, until, jid, "failed")
            assert failed.failure and failed.failure.group == "mail-outcomes", what
            assert failed.failure.message.startswith(f"{handler.klass} returned "), what


async def test_returned_coroutine_is_awaited(client: Client, work: Work, until: Until) -> None:
    ran: list[str] = []

    async def send(what: str) -> str:
        ran.append(what)
        return what

    @job(klass="Forgets", result_ttl=60)
    async def forgets(job: Job[Any]) -> Any:
        return send("coroutine")

    @job(klass="ForgetsInThread", result_ttl=60)
    def forgets_in_thread(job: Job[Any]) -> Any:
        return send("thread")

    mail = client.queue("mail")
    jids = [await mail.put(each) for each in (forgets, forgets_in_thread)]
    async with work(forgets, forgets_in_thread):
        assert [await jid.result(10) for jid in jids] == ["coroutine", "thread"]
    assert sorted(ran) == ["coroutine", "thread"]


async def test_database_cursor_may_be_returned() -> None:
    @job(klass="Deletes")
    def deletes(job: Job[Any]) -> object:
        with closing(sqlite3.connect(":memory:")) as database:
            return database.execute("SELECT 1")

    assert (await perform(deletes.data())).error is None


@pytest.mark.parametrize("returned", [True, False])
async def test_middleware_that_does_not_await_its_call_fails_the_run(
    client: Client, work: Work, until: Until, returned: bool
) -> None:
    ran: list[str] = []

    @middleware
    async def forgets(job: Job[Any], call: CallNext) -> Any:
        work = call()
        return work if returned else None

    @job(klass="Charge", retries=0)
    async def charge(job: Job[Any]) -> None:
        ran.append(job.jid)

    jid = await client.queue("mail").put(charge)
    async with work(charge, forgets):
        failed = await after(client, until, jid, "failed")
    assert not ran and failed.failure
    assert "without awaiting its call" in failed.failure.message
    done = await perform(charge.data(), middleware=[forgets])
    assert isinstance(done.error, TypeError) and not ran


async def test_middleware_may_skip_the_handler(client: Client) -> None:
    @middleware
    async def skips(job: Job[Any], call: CallNext) -> Any:
        return None

    done = await perform(coroutine.data(error="getattr"), middleware=[skips])
    assert done.error is None


# Long messages


async def test_long_messages_are_cut_where_they_are_stored_and_logged(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    statement = "é" * 100_000

    @job(klass="Refused", retries=0)
    async def refused(job: Job[Any], how: str) -> None:
        await job.log(statement)
        if how == "method":
            await job.fail(statement)
            return
        raise Fail(statement) if how == "fail" else Retry(statement, group="again")

    jids = [await client.queue("mail").put(refused.data(how=how)) for how in ("method", "fail", "")]
    async with work(refused):
        for jid in jids:
            failed = await after(client, until, jid, "failed")
            assert failed.failure
            message = failed.failure.message
            assert 16_000 < len(message.encode()) <= 16_384
            assert message.endswith(" characters left out)")
            logged = next(each for each in failed.events if each["what"].startswith("é"))
            assert len(logged["what"].encode()) <= 16_384
    for line in lines.of("job.failed"):
        assert len(str(line["message"]).encode()) <= 16_384
