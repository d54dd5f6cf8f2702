"""Signals and sleep: runs that wait, park, and continue."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import pytest

from aioqless import (
    AlreadySignaled,
    Client,
    Job,
    NoSuchJob,
    Parked,
    Retry,
    Settings,
    Worker,
    WrongState,
    job,
    middleware,
)
from aioqless.client.job import JobState
from aioqless.contrib.durable.generated_commands import DurableCommands
from aioqless.contrib.encryption import Encryption
from aioqless.store.call import encode
from aioqless.testing import Clock, RunReleased, perform, run_jobs
from tests.conftest import Until, existing_job


@dataclasses.dataclass
class Approval:
    ok: bool
    by: str = "ada"


class Places(list[str]):
    """The places that a handler has come to."""


@pytest.fixture
def places() -> Places:
    return Places()


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000_000)


@pytest.fixture
async def timed(redis_url: str, namespace: str, clock: Clock) -> AsyncIterator[Client]:
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        yield client


def worker(client: Client, *handlers: Any, park_after: float = 0, **settings: Any) -> Worker:
    given = Settings(queues=["default"], park_after=park_after, poll=0.1, **settings)
    return Worker(client, *handlers, settings=given)


def is_parked(client: Client, jid: str) -> Callable[[], Any]:
    async def look() -> bool:
        return bool((await existing_job(client, jid)).held_back)

    return look


async def test_parked_job_continues_when_the_signal_is_there(
    client: Client, places: Places, until: Until
) -> None:
    async def draft() -> str:
        places.append("draft")
        return "draft"

    @job(result_ttl=60, retries=1)
    async def refund(job: Job) -> Any:
        await job.step("draft", draft)
        try:
            answer = await job.wait_for("approval", Approval)
        finally:
            places.append("left")
        return [answer.ok, answer.by]

    jid = await client.queue("default").put(refund)
    async with worker(client, refund):
        await until(is_parked(client, jid))
        parked = await existing_job(client, jid)
        assert parked.state == JobState.SCHEDULED and parked.worker == ""
        assert parked.held_back and parked.held_back.reason == "it waits for signal approval"
        await client.jobs.signal(jid, "approval", Approval(ok=True))
        assert await client.jobs.result(jid, timeout=30) == [True, "ada"]
    assert places == ["draft", "left", "left"]
    assert (await existing_job(client, jid)).remaining == 1


async def test_signal_within_a_moment_is_received_by_the_same_run(
    client: Client, places: Places, until: Until
) -> None:
    @job
    async def handler(job: Job) -> None:
        places.append("run")
        places.append(str(await job.wait_for("approval", int)))

    jid = await client.queue("default").put(handler)
    async with worker(client, handler, park_after=60):
        await until(lambda: places)
        await client.jobs.signal(jid, "approval", 7)
        await client.jobs.wait(jid, 30)
    assert places == ["run", "7"]


async def test_signal_before_the_wait_is_kept(client: Client, places: Places) -> None:
    @job
    async def handler(job: Job) -> None:
        places.append(await job.wait_for("approval", str))
        if len(places) == 1:
            raise Retry(delay=0)  # a later run sees the same

    jid = await client.queue("default").put(handler)
    await client.jobs.signal(jid, "approval", "yes")
    with pytest.raises(AlreadySignaled):
        await client.jobs.signal(jid, "approval", "no", replace=False)
    await run_jobs(client, handler)
    assert places == ["yes", "yes"]
    assert await client.jobs.steps(jid) == []
    with pytest.raises(WrongState):
        await client.jobs.signal(jid, "approval", "yes")
    with pytest.raises(NoSuchJob):
        await client.jobs.signal("unknown", "approval")


async def test_timeout_is_stored(timed: Client, clock: Clock, places: Places) -> None:
    @job
    async def handler(job: Job) -> None:
        try:
            await job.wait_for("approval", timeout=3600)
        except TimeoutError as late:
            places.append(str(late))
            if len(places) == 1:
                raise Retry(delay=0) from late

    jid = await timed.queue("default").put(handler)
    await run_jobs(timed, handler)
    assert (await existing_job(timed, jid)).state == JobState.SCHEDULED
    clock.move(3599)
    await run_jobs(timed, handler)
    assert places == []
    clock.move(1)
    await run_jobs(timed, handler)
    assert places == ["signal 'approval' did not come in time"] * 2
    assert (await existing_job(timed, jid)).state == JobState.COMPLETE


async def test_sleep_lasts_from_the_first_run_on(
    timed: Client, clock: Clock, places: Places
) -> None:
    @job
    async def handler(job: Job) -> None:
        places.append("run")
        await job.sleep("cool-down", 3600)
        places.append("end")

    jid = await timed.queue("default").put(handler)
    await run_jobs(timed, handler)
    held = (await existing_job(timed, jid)).held_back
    assert held is not None and (held.waits_for, held.until) == (("sleep:cool-down",), 1_003_600)
    clock.move(1800)
    await (await existing_job(timed, jid)).move("default")
    await run_jobs(timed, handler)
    clock.move(1800)
    await run_jobs(timed, handler)
    assert places == ["run", "run", "run", "end"]


@pytest.mark.parametrize("kind", ["gather", "group"])
async def test_first_of_several_waits_wakes_the_job(
    client: Client, places: Places, until: Until, kind: str
) -> None:
    @job(result_ttl=60)
    async def handler(job: Job) -> Any:
        places.append("run")
        if kind == "gather":
            return await asyncio.gather(job.wait_for("a", int), job.wait_for("b", int))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job.wait_for(name, int)) for name in "ab"]
        return [task.result() for task in tasks]

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        await until(is_parked(client, jid))
        await client.jobs.signal(jid, "b", 2)
        await until(lambda: len(places) == 2)
        await until(is_parked(client, jid))
        await client.jobs.signal(jid, "a", 1)
        assert await client.jobs.result(jid, timeout=30) == [1, 2]
    assert len(places) == 3


async def test_steps_that_are_under_way_keep_a_run_from_parking(
    client: Client, places: Places, until: Until
) -> None:
    may_end = asyncio.Event()

    async def long() -> None:
        places.append("begun")
        await may_end.wait()
        places.append("ended")

    @job
    async def handler(job: Job) -> None:
        await asyncio.gather(job.wait_for("approval", int), job.step("long", long))

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        await until(lambda: places)
        await until(lambda: has_kinds(client, jid, "wait"))
        assert (await existing_job(client, jid)).state == JobState.RUNNING
        may_end.set()
        await until(is_parked(client, jid))
        await client.jobs.signal(jid, "approval", 1)
        await client.jobs.wait(jid, 30)
    assert places == ["begun", "ended"]


async def has_kinds(client: Client, jid: str, *kinds: str) -> bool:
    return set(kinds) <= {step.kind for step in await client.jobs.steps(jid)}


async def test_unsuitable_value_fails_the_run_and_can_be_replaced(
    client: Client, until: Until
) -> None:
    @job(result_ttl=60)
    async def handler(job: Job) -> int:
        return await job.wait_for("amount", int)

    jid = await client.queue("default").put(handler)
    await client.jobs.signal(jid, "amount", "much")
    async with worker(client, handler):
        failed = await client.jobs.wait(jid, 30)
        assert failed.failure and "signal 'amount' is not of its type" in failed.failure.message
        with pytest.raises(WrongState):
            await client.jobs.signal(jid, "amount", 3)
        await client.jobs.signal(jid, "amount", 3, replace=True)
        await client.jobs.retry(jid)
        assert await client.jobs.result(jid, timeout=30) == 3


async def test_plain_function_waits_in_its_thread(client: Client, until: Until) -> None:
    @job(result_ttl=60)
    def handler(job: Job) -> Any:
        _ = job.sleep("short", 0.01)
        return job.wait_for("approval", int)

    jid = await client.queue("default").put(handler)
    async with worker(client, handler, park_after=0.5):
        await until(is_parked(client, jid))
        await client.jobs.signal(jid, "approval", 1)
        assert await client.jobs.result(jid, timeout=30) == 1


async def test_run_parks_at_once_while_the_worker_shuts_down(
    client: Client, places: Places, until: Until
) -> None:
    @job
    async def handler(job: Job) -> None:
        places.append("run")
        await job.wait_for("approval", timeout=3600)

    jid = await client.queue("default").put(handler)
    async with worker(client, handler, park_after=600):
        await until(lambda: has_kinds(client, jid, "wait"))
    assert (await existing_job(client, jid)).held_back is not None


async def test_middleware_sees_no_failure_and_data_is_stored(
    client: Client, places: Places, until: Until
) -> None:
    @middleware
    async def around(job: Job, call_next: Any) -> Any:
        try:
            return await call_next()
        except Exception:
            places.append("failure")
            raise
        except Parked:
            places.append("parked")
            raise

    @job
    async def handler(job: Job) -> None:
        if not job.data:
            job.data = {"run": 1}
        await job.wait_for("approval")

    jid = await client.queue("default").put(handler)
    async with worker(client, handler, around):
        await until(is_parked(client, jid))
        assert (await existing_job(client, jid)).data == {"run": 1}
        await client.jobs.signal(jid, "approval")
        assert (await client.jobs.wait(jid, 30)).failure is None
    assert places == ["parked"]


async def catch_by_gather(waits: Sequence[Coroutine[Any, Any, int]]) -> Any:
    return await asyncio.gather(*waits, return_exceptions=True)


async def catch_by_finally(waits: Sequence[Coroutine[Any, Any, int]]) -> Any:
    found: list[int] = []
    try:
        found.extend([await each for each in waits])
    finally:
        for each in waits:
            each.close()
        return found  # noqa: B012  # what this is about


async def catch_by_exit(waits: Sequence[Coroutine[Any, Any, int]]) -> Any:
    found: list[int] = []
    with contextlib.suppress(BaseException):
        found.extend([await each for each in waits])
    for each in waits:
        each.close()
    return found


@pytest.mark.parametrize("catch", [catch_by_gather, catch_by_finally, catch_by_exit])
@pytest.mark.parametrize("kind", ["signal", "call"])
async def test_run_that_has_parked_does_not_complete_whatever_catches_it(
    client: Client,
    until: Until,
    kind: str,
    catch: Callable[[Sequence[Coroutine[Any, Any, int]]], Any],
) -> None:
    @job(result_ttl=60, retries=0)
    async def asks(job: Job) -> Any:
        if kind == "signal":
            return await catch([job.wait_for(name, int) for name in ("a", "b")])
        return await catch([job.call(name, answer.data(name)) for name in ("a", "b")])

    @job(retries=0)
    async def answer(job: Job, name: str) -> int:
        return await job.wait_for(name, int)

    jid = await client.queue("default").put(asks)
    async with worker(client, asks, answer):
        await until(is_parked(client, jid))
        for number, name in enumerate("ab", 1):
            waits = str(jid)
            if kind == "call":
                waits = f"{jid}-{number}"
                await until(partial(client.jobs.get, waits))
            await client.jobs.signal(waits, name, number)
        assert await client.jobs.result(jid, timeout=30) == [1, 2]


async def test_ignored_park_is_logged_and_parks_in_perform_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @job
    async def asks(job: Job) -> Any:
        return await catch_by_exit([job.wait_for("a", int)])

    done = await perform(asks.data())
    assert isinstance(done.outcome, RunReleased) and done.outcome.waits == ("wait:a",)
    assert any("job.park_ignored" in each.getMessage() for each in caplog.records)


async def test_settled_job_does_not_park(client: Client) -> None:
    @job
    async def asks(job: Job) -> None:
        with contextlib.suppress(BaseException):
            await job.wait_for("a", int)
        await job.complete()

    jid = await client.queue("default").put(asks)
    async with worker(client, asks):
        await client.jobs.wait(jid, 30)
    assert (await existing_job(client, jid)).state == "complete"


async def test_values_are_encrypted(
    redis_url: str, namespace: str, client: Client, until: Until
) -> None:
    @job(result_ttl=60)
    async def handler(job: Job) -> str:
        return await job.wait_for("secret", str)

    codec = Encryption(Encryption.new_key())
    async with Client(redis_url, namespace=namespace, codec=codec) as own:
        jid = await own.queue("default").put(handler)
        await own.jobs.signal(jid, "secret", "tea at five")
        stored = await client.redis.hgetall(f"{namespace}:x:steps:{jid}")
        assert b"tea at five" not in b"".join(map(encode, stored.values()))
        async with worker(own, handler):
            assert await own.jobs.result(jid, timeout=30) == "tea at five"


async def test_perform_takes_what_was_received_and_parks_otherwise() -> None:
    @job(result_ttl=60)
    async def handler(job: Job) -> Any:
        await job.sleep("nap", 60)
        return await job.wait_for("approval", Approval)

    done = await perform(handler.data(), steps={"nap": None, "approval": Approval(ok=True)})
    assert done.result == Approval(ok=True)
    parked = await perform(handler.data(), steps={"nap": None})
    assert isinstance(parked.outcome, RunReleased)
    assert parked.outcome.waits == ("wait:approval",)
    assert isinstance(parked.error, Parked)


async def test_signal_sent_while_the_worker_does_not_listen_is_received(
    client: Client, until: Until
) -> None:
    @job(result_ttl=60)
    async def handler(job: Job) -> str:
        received: str = await job.wait_for("go", str)
        return received

    jid = await client.queue("default").put(handler)
    async with worker(client, handler, park_after=600):
        commands = DurableCommands(client.internals.store)
        await until(lambda: commands.steps(jid=jid))
        await client.redis.client_kill_filter(_type="pubsub")
        await client.jobs.signal(jid, "go", "now")  # before the worker is connected again
        assert await client.jobs.result(jid, timeout=60) == "now"
