"""Job sets: client.job_set and set_of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import aioqless
from aioqless import (
    AioqlessError,
    Client,
    JobExists,
    NewJob,
    PutManyError,
    SetClosed,
    Worker,
    chain,
    group,
)
from aioqless.client.codec import Codec
from aioqless.client.job.state import JobSetStatus
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.job_sets import set_of
from aioqless.errors import NoSuchSet, WrongState
from tests.conftest import Until


@aioqless.job(queue="rows", result_ttl=60)
async def double(_: aioqless.Job, number: int) -> int:
    if number < 0:
        raise aioqless.Fail("there is no such row", group="negative")
    return 2 * number


@aioqless.job(queue="rows")
async def split(job: aioqless.Job, count: int) -> None:
    await set_of(job).put_many(double.data(number=number) for number in range(count))


@aioqless.job(queue="reports")
async def report(_: aioqless.Job, name: str) -> None: ...


def rows(count: int) -> Iterator[NewJob]:
    return (double.data(number=number) for number in range(count))


async def ended(job_set: aioqless.JobSet) -> JobSetStatus:
    """Wait for the end of a set."""
    return [status async for status in job_set.follow(interval=0.01)][-1]


async def test_set_is_followed_from_its_first_member_to_its_callbacks(client: Client) -> None:
    numbers = client.job_set("n", then=report.data(name="n"), when_ended=report.data(name="e"))
    assert await numbers.put_many(rows(120)) == 120
    await numbers.close()
    shares = []
    async with Worker(client, [double, report]):
        async for status in numbers.follow(interval=0.01):
            shares.append(status.progress)
    assert shares == sorted(shares) and shares[-1] == 1
    assert (status.complete, status.failed, status.open) == (120, 0, 0)
    assert status.then_jid == "n-then-1" and status.ended_jid == "n-ended-1"
    found = dict([each async for each in numbers.results(double)])
    assert sorted(found.values()) == [2 * number for number in range(120)]


async def test_members_come_from_an_asynchronous_iterable(client: Client) -> None:
    async def read() -> AsyncIterator[NewJob]:
        for job in rows(130):
            await asyncio.sleep(0)
            yield job

    numbers = client.job_set("n")
    assert await numbers.put_many(read()) == 130
    assert (await numbers.status()).open == 130


async def test_running_member_adds_to_a_closed_set(client: Client) -> None:
    numbers = client.job_set("n", then=report.data(name="n"))
    await numbers.put(split, {"count": 60})
    await numbers.close()
    with pytest.raises(SetClosed):
        await numbers.put(double.data(number=1))
    with pytest.raises(SetClosed):
        await numbers.put_many(rows(3))
    async with Worker(client, [double, split, report]):
        status = await ended(numbers)
    assert (status.added, status.complete) == (61, 61)


async def test_failed_members_are_listed_and_retried(client: Client) -> None:
    numbers = client.job_set("n", then=report.data(name="n"), when_ended=report.data(name="e"))
    bad = await numbers.put(double.data(number=-1), jid="bad")
    await numbers.put_many(rows(3))
    await numbers.close()
    async with Worker(client, [double]):
        status = await ended(numbers)
        assert status.groups == {"negative": 1} and status.then_jid is None
        assert [jid async for jid in numbers.jids("failed")] == [bad]
        first = status.ended_jid
        await (await bad.job()).refresh()
        await client.jobs.retry("bad", data={"number": 4})
        status = await ended(numbers)
    assert (status.complete, status.failed, status.ended_jid) == (4, 0, first)
    assert status.then_jid == "n-then-1"


async def test_cancel_stops_running_members(client: Client, until: Until) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @aioqless.job(queue="rows", klass="hang")
    async def hang(_: aioqless.Job) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    numbers = client.job_set("n", when_ended=report.data(name="n"))
    await numbers.put(hang)
    async with Worker(client, [hang]):
        await asyncio.wait_for(started.wait(), 30)
        await numbers.put_many(NewJob("elsewhere", {}) for _ in range(250))
        assert await numbers.cancel() == 251
        await asyncio.wait_for(stopped.wait(), 30)
    status = await numbers.status()
    assert (status.canceled, status.open, status.has_ended) == (251, 0, True)
    assert status.ended_jid == "n-ended-1"


async def test_other_callbacks_are_refused(client: Client) -> None:
    await client.job_set("n", then=report.data(name="n")).put(double.data(number=1))
    await client.job_set("n", then=report.data(name="n")).put(double.data(number=2))
    await client.job_set("n").put(double.data(number=3))
    with pytest.raises(WrongState, match="callbacks"):
        await client.job_set("n", then=report.data(name="m")).put(double.data(number=4))
    with pytest.raises(ValueError, match="the option jid"):
        client.job_set("n", then=NewJob("x", {}, jid="a"))


async def test_encrypted_callbacks_are_the_same_each_time(redis_url: str, namespace: str) -> None:
    codec: Codec = Encryption(Encryption.new_key())
    async with Client(redis_url, namespace=namespace, codec=codec) as client:
        for number in range(2):
            numbers = client.job_set("n", then=report.data(name="n"))
            await numbers.put(double.data(number=number))
        await numbers.close()
        async with Worker(client, [double, report]):
            status = await ended(numbers)
            assert status.then_jid
            await client.jobs.wait(status.then_jid, timeout=30)


async def test_refused_member_is_named(client: Client) -> None:
    await client.job_set("a").put(double.data(number=1), jid="x")
    with pytest.raises(JobExists):
        await client.job_set("b").put(double.data(number=1), jid="x")
    jobs = [double.data(number=1), double.data(number=2).with_options(jid="x")]
    with pytest.raises(PutManyError):
        await client.job_set("b").put_many(jobs)


async def test_workflow_is_followed_retried_and_canceled_as_a_set(client: Client) -> None:
    page = client.job_set("page", when_ended=report.data(name="page"))
    flow = chain(double.data(number=1), group(double.data(number=2), double.data(number=3)))
    put = await page.put_flow(flow, queue="numbers", once="page")
    assert (await page.put_flow(flow, queue="numbers", once="page")).existing == "page-1"
    await page.close()
    status = await page.status()
    assert (status.added, status.open) == (3, 3)
    (first,) = await client.queue("numbers").pop(9)
    await first.fail("no such word", group="typo")
    status = await page.status()
    assert (status.failed, status.held, status.has_ended) == (1, 2, True)
    assert await page.retry_failed() == 1
    (first,) = await client.queue("numbers").pop(9)
    await first.complete()
    assert await page.cancel() == 2
    status = await page.status()
    assert (status.added, status.complete, status.canceled) == (3, 1, 2)
    assert list(put.jids) == ["page-1", "page-2", "page-3"]


async def test_workflow_is_put_into_a_set_as_a_whole(client: Client) -> None:
    await client.job_set("other").put(double.data(number=1), jid="a", queue="numbers")
    page = client.job_set("page")
    with pytest.raises(JobExists):
        await page.put_flow(
            chain(double.data(number=1), double.data(number=2).with_options(jid="a")),
            queue="numbers",
        )
    with pytest.raises(NoSuchSet):
        await page.status()
    assert await client.queue("numbers").length() == 1


async def test_set_that_is_unknown(client: Client) -> None:
    unknown = client.job_set("n")
    for act in (unknown.status, unknown.cancel, unknown.retry_failed):
        with pytest.raises(NoSuchSet):
            await act()
    assert await client.job_sets() == []


async def test_job_outside_a_set_has_none(client: Client) -> None:
    await client.put(double.data(number=1))
    (job,) = await client.queue("rows").pop()
    with pytest.raises(AioqlessError, match="member of no job set"):
        set_of(job)


async def test_only_jobs_are_put(client: Client) -> None:
    with pytest.raises(TypeError, match="put_many takes jobs"):
        await client.job_set("n").put_many([1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="put_many takes jobs"):
        await client.job_set("n").put_many(double.data(number=1))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [3_000, pytest.param(200_000, marks=pytest.mark.long)])
async def test_large_set_is_handled_in_bounded_calls(client: Client, count: int) -> None:
    numbers = client.job_set("n", when_ended=report.data(name="n"))
    assert await numbers.put_many(rows(count)) == count
    jobs = await client.queue("rows").pop(100)
    for job in jobs[:50]:
        await job.complete()
    status = await numbers.status()
    assert (status.added, status.open, status.complete) == (count, count - 50, 50)
    seen = {jid async for jid in numbers.jids("open")}
    assert len(seen) == count - 50
    assert await numbers.cancel() == count - 50
    status = await numbers.status()
    assert (status.canceled, status.complete, status.has_ended) == (count - 50, 50, True)
    assert status.ended_jid == "n-ended-1"
