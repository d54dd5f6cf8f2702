"""Automatic retries and timeouts."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from aioqless import Client, Job, JobRecord, Settings, Worker, job
from aioqless.handlers.retry_policy import exponential, exq, fixed, sidekiq


class Flaky(Exception):
    """A transient failure."""


def failing(times: int, error: type[Exception], **options: Any) -> Any:
    """Return a handler that raises `error` a number of times, then returns."""
    left = times

    @job(klass="flaky", **options)
    async def flaky(job: Job) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise error("not now")

    return flaky


@pytest.mark.parametrize("retry_on", [Flaky, (Flaky,), (LookupError, Flaky)])
async def test_transient_error_uses_a_retry(client: Client, until: Any, retry_on: Any) -> None:
    handler = failing(2, Flaky, retry_on=retry_on, backoff=fixed(0))
    jid = await client.queue("default").put(handler, {}, retries=3)
    async with Worker(client, handler):
        done = await until(lambda: completed(client, jid))
    run = ["popped", "retried"]
    assert [event["what"] for event in done.events] == ["put", *run, *run, "popped", "done"]


async def test_run_over_its_timeout_is_canceled_and_fails_in_its_own_group(
    client: Client, until: Any
) -> None:
    cancelled = asyncio.Event()

    @job(klass="slow", timeout=0.05)
    async def slow(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    jid = await client.queue("default").put(slow, {})
    async with Worker(client, slow):
        assert (await until(lambda: failure(client, jid))).group == "default-timeout"
        await cancelled.wait()


async def test_timeout_of_the_worker_applies_to_handlers_without_one(
    client: Client, until: Any
) -> None:
    ended: dict[str, bool] = {}

    def make(klass: str, **options: Any) -> Any:
        @job(klass=klass, **options)
        async def handler(job: Job) -> None:
            await asyncio.sleep(0.3)
            ended[job.klass] = True

        return handler

    plain, own = make("plain"), make("own", timeout=60)
    jids = [await client.queue("default").put(each, {}) for each in (plain, own)]
    async with Worker(client, plain, own, settings=Settings(timeout=timedelta(seconds=0.1))):
        assert (await until(lambda: failure(client, jids[0]))).group == "default-timeout"
        await until(lambda: completed(client, jids[1]))
    assert ended == {"own": True}
    with pytest.raises(ValueError, match="timeout must be"):
        Settings(timeout=0)


async def test_thread_over_its_timeout_fails_on_time_and_keeps_its_slot_until_it_returns(
    client: Client, until: Any
) -> None:
    go_on = threading.Event()

    @job(klass="slow", timeout=0.05)
    def slow(job: Job) -> None:
        go_on.wait(30)

    jid = await client.queue("default").put(slow, {})
    async with Worker(client, slow) as worker:
        assert (await until(lambda: failure(client, jid))).group == "default-timeout"
        assert worker.running == [jid]
        go_on.set()
        await until(lambda: not worker.running)
    assert (await client.jobs.failed_counts()) == {"default-timeout": 1}


def test_backoffs_grow_as_documented() -> None:
    growing = exponential(5, 60, jitter=0)
    assert [growing(used) for used in (0, 1, 2, 3, 4, 5000)] == [5, 10, 20, 40, 60, 60]
    assert all(5 <= exponential(5, 60, jitter=0.5)(0) <= 7.5 for _ in range(100))
    assert all(16 + 15 <= sidekiq(2) <= 16 + 15 + 27 for _ in range(100))
    assert all(16 + 15 <= exq(2) <= 16 + 15 + 87 for _ in range(100))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"retry_on": ("Flaky",)}, "retry_on"),
        ({"backoff": fixed(1)}, "retry_on"),
        ({"retry_on": (Flaky,), "backoff": 3}, "backoff"),
    ],
)
def test_invalid_handler_options_are_refused_by_the_decorator(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        failing(0, Flaky, **options)


async def completed(client: Client, jid: str) -> JobRecord | None:
    job = await client.jobs.get(jid)
    return job if job and job.state == "complete" else None


async def failure(client: Client, jid: str) -> Any:
    job = await client.jobs.get(jid)
    return job.failure if job and job.state == "failed" else None
