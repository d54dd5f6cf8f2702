"""Steps: what a run stores, and later runs find."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest

from aioqless import (
    Client,
    InvalidData,
    Job,
    JobRecord,
    LockLost,
    Retry,
    Settings,
    Worker,
    job,
)
from aioqless.client.jid import Jid
from aioqless.client.job import JobState
from aioqless.contrib.encryption import Encryption
from aioqless.errors import AioqlessError, InvalidArgument
from aioqless.handlers.retry_policy import fixed
from aioqless.testing import perform
from tests.conftest import Until, existing_job


@dataclasses.dataclass
class Plan:
    parts: list[str]


class Calls(list[str]):
    """Functions of steps, which note that they were called."""

    async def plan(self, topic: str) -> Plan:
        self.append("plan")
        return Plan([f"{topic} 1", f"{topic} 2"])

    def write(self, part: str) -> str:
        self.append(part)
        assert threading.current_thread() is not threading.main_thread()
        return part.upper()


@pytest.fixture
def calls() -> Calls:
    return Calls()


async def ended(client: Client, jid: str) -> JobRecord:
    job = await client.jobs.wait(jid, timeout=30)
    assert job.failure is None or job.state == JobState.FAILED, job.failure
    return job


def worker(client: Client, *handlers: Any, **settings: Any) -> Worker:
    return Worker(client, *handlers, settings=Settings(queues=["default", "next"], **settings))


async def run(client: Client, handler: Any) -> JobRecord:
    """Put a job, and run it to its end."""
    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        return await ended(client, jid)


async def test_step_that_puts_a_job_stores_its_jid(client: Client) -> None:
    @job(klass="Child")
    async def child(job: Job) -> None: ...

    @job(result_ttl=60)
    async def parent(job: Job) -> list[str]:
        return [await job.step("typed", child.put), await job.step("by klass", put_by_klass)]

    async def put_by_klass() -> Jid:
        return await client.put("Child")

    async with worker(client, parent, child):
        jids = await (await client.put(parent.data())).result(timeout=30)
        assert [found.klass for found in await client.jobs.multiget(*jids)] == ["Child", "Child"]


async def test_later_run_gets_what_was_stored_in_its_type(client: Client, calls: Calls) -> None:
    seen: list[object] = []

    @job(retry_on=ConnectionError, backoff=fixed(0))
    async def research(job: Job) -> None:
        plan = await job.step("plan", calls.plan, "tea")
        texts = [
            await job.step(f"draft-{n}", calls.write, part) for n, part in enumerate(plan.parts)
        ]
        seen.append((plan, texts))
        if len(seen) == 1:
            raise ConnectionError

    ran = await run(client, research)
    assert ran.state == "complete"
    assert calls == ["plan", "tea 1", "tea 2"]
    assert seen == [(Plan(["tea 1", "tea 2"]), ["TEA 1", "TEA 2"])] * 2
    assert await client.jobs.steps(ran.jid) == []


async def test_error_of_a_step_is_not_stored(client: Client) -> None:
    calls = 0

    async def flaky() -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError
        return calls

    @job(retry_on=ConnectionError, backoff=fixed(0), result_ttl=60)
    async def handler(job: Job) -> int:
        return await job.step("flaky", flaky)

    assert await (await run(client, handler)).result() == 2


async def test_name_that_is_used_twice_in_a_run_is_refused(client: Client, calls: Calls) -> None:
    @job
    async def handler(job: Job) -> None:
        await job.step("plan", calls.plan, "a")
        await job.step("plan", calls.plan, "b")

    ended = await perform(handler.data())
    assert isinstance(ended.error, ValueError)
    assert "'plan' is used twice" in str(ended.error)
    assert calls == ["plan"]


async def test_concurrent_steps_are_stored(client: Client) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0.01)
        return 2 * number

    @job(result_ttl=60)
    async def handler(job: Job) -> int:
        doubled = await asyncio.gather(*(job.step(f"{n}", double, n) for n in range(50)))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job.step(f"more {n}", double, n)) for n in range(3)]
        return sum(doubled) + sum(task.result() for task in tasks)

    assert await (await run(client, handler)).result() == sum(range(50)) * 2 + 6


async def test_without_annotation_both_runs_get_json(client: Client) -> None:
    seen: list[Any] = []

    def untyped():  # type: ignore[no-untyped-def]
        return Plan(["a"])

    @job
    async def handler(job: Job) -> None:
        seen.append(await job.step("untyped", untyped))
        if len(seen) == 1:
            raise Retry(delay=0)

    await run(client, handler)
    assert seen == [{"parts": ["a"]}] * 2


def wrong_type() -> int:
    return "text"  # type: ignore[return-value]


def no_json() -> object:
    return object()


def too_large() -> str:
    return "x" * (1 << 20)


@pytest.mark.parametrize("function", [wrong_type, no_json, too_large])
async def test_unsuitable_value_is_an_error_that_names_the_step(
    function: Callable[[], object],
) -> None:
    @job
    async def handler(job: Job) -> None:
        await job.step("count", function)

    ended = await perform(handler.data())
    assert isinstance(ended.error, InvalidData)
    assert "step 'count'" in str(ended.error)


async def test_stored_value_of_another_type_fails_the_job(client: Client) -> None:
    def count() -> int:
        return 1

    @job
    async def handler(job: Job) -> None:
        await job.step("count", count)

    ended = await perform(handler.data(), steps={"count": "many"})
    assert "step 'count' is not of its type" in str(ended.error)


async def test_annotation_that_cannot_be_resolved_is_refused_before_the_call(calls: Calls) -> None:
    def count() -> Missing:  # type: ignore[name-defined]  # noqa: F821
        calls.append("called")

    @job
    async def handler(job: Job) -> None:
        await job.step("count", count)

    ended = await perform(handler.data())
    assert isinstance(ended.error, TypeError)
    assert calls == []


async def test_plain_handler_calls_steps_synchronously(client: Client, calls: Calls) -> None:
    runs: list[object] = []

    @job(retry_on=ConnectionError, backoff=fixed(0))
    def handler(job: Job) -> None:
        plan: Any = job.step("plan", calls.plan, "tea")
        runs.append((plan, job.step("write", calls.write, "x")))
        if len(runs) == 1:
            raise ConnectionError

    await run(client, handler)
    assert calls == ["plan", "x"]
    assert runs == [(Plan(["tea 1", "tea 2"]), "X")] * 2


async def test_lost_lock_stores_nothing(client: Client, until: Until) -> None:
    began, canceled, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    errors: list[BaseException] = []

    async def effect() -> int:
        began.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                canceled.set()  # code that does not stop
        return 1

    @job
    async def handler(job: Job) -> None:
        try:
            await job.step("effect", effect)
        except BaseException as error:
            errors.append(error)
            raise

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        await began.wait()
        running = await existing_job(client, jid)
        await running.move("elsewhere")
        await canceled.wait()
        go_on.set()
        await until(lambda: errors)
    assert isinstance(errors[0], LockLost)
    assert await client.jobs.steps(jid) == []


async def test_step_in_a_thread_is_stored_though_the_run_is_stopped(
    client: Client, until: Until
) -> None:
    began, go_on = threading.Event(), threading.Event()
    jobs: list[Job] = []

    def pay() -> int:
        began.set()
        go_on.wait(30)
        return 7

    @job
    async def handler(job: Job) -> None:
        jobs.append(job)
        await job.step("pay", pay)

    jid = await client.queue("default").put(handler)
    async with worker(client, handler, shutdown_timeout=0) as running:
        await asyncio.to_thread(began.wait)
        running.stop()
        await until(lambda: jobs[0].stopped)
        go_on.set()
    assert [step.value for step in await client.jobs.steps(jid)] == [7]
    assert (await client.jobs.get(jid)).state == "waiting"


async def test_values_are_encrypted(redis_url: str, namespace: str, calls: Calls) -> None:
    codec = Encryption(Encryption.new_key())

    @job
    async def handler(job: Job) -> None:
        await job.step("plan", calls.plan, "secret")
        raise ValueError

    async with Client(redis_url, namespace=namespace, codec=codec) as client:
        jid = (await run(client, handler)).jid
        stored = await client.redis.hgetall(f"{namespace}:x:steps:{jid}")
        assert not any(b"secret" in each for each in stored.values())
        [step] = await client.jobs.steps(jid)
        assert (step.kind, step.name, step.value) == (
            "step",
            "plan",
            {"parts": ["secret 1", "secret 2"]},
        )
        await client.jobs.retry(jid)
        async with worker(client, handler):
            await ended(client, jid)
        assert calls == ["plan"]


async def test_retry_from_a_step_calls_it_and_later_ones_again(
    client: Client, calls: Calls
) -> None:
    @job
    async def handler(job: Job) -> None:
        plan = await job.step("plan", calls.plan, "tea")
        for part in plan.parts:
            await job.step(part, calls.write, part)
        raise ValueError

    jid = await client.queue("default").put(handler)
    async with worker(client, handler):
        await ended(client, jid)
        with pytest.raises(InvalidArgument):
            await client.jobs.retry(jid, from_step="unknown")
        await client.jobs.retry(jid, from_step="tea 2")
        await ended(client, jid)
    assert calls == ["plan", "tea 1", "tea 2", "tea 2"]


async def test_perform_has_the_steps_that_a_test_gives(calls: Calls) -> None:
    @job(result_ttl=60)
    async def handler(job: Job) -> list[str]:
        plan = await job.step("plan", calls.plan, "tea")
        return [await job.step("write", calls.write, plan.parts[0])]

    done = await perform(handler.data(), steps={"plan": Plan(["x"])})
    assert (done.result, calls) == (["X"], ["x"])
    assert [command for command, _ in done.commands] == ["step"]


async def test_later_version_may_reorder_remove_add_and_rename_steps(
    client: Client, calls: Calls
) -> None:
    @job(klass="Versions")
    async def first(job: Job) -> None:
        for name in ("a", "b", "removed", "renamed"):
            await job.step(name, calls.write, name)
        raise ValueError

    @job(klass="Versions", result_ttl=60)
    async def second(job: Job) -> list[str]:
        names = ("b", "new", "a", "other name")
        return [await job.step(name, calls.write, f"later {name}") for name in names]

    jid = (await run(client, first)).jid
    calls.clear()
    await client.jobs.retry(jid)
    async with worker(client, second):
        assert (await ended(client, jid)).state == JobState.COMPLETE
    assert await client.jobs.result(jid) == ["B", "LATER NEW", "A", "LATER OTHER NAME"]
    assert calls == ["later new", "later other name"]


async def test_steps_in_processes_are_refused(client: Client) -> None:
    from tests.contrib.durable.in_processes import handler

    job = await run(client, handler)
    assert job.failure is not None
    assert "a process has no connection" in job.failure.message


async def test_step_without_a_worker_is_refused(client: Client, calls: Calls) -> None:
    await client.queue("default").put("Any")
    [popped] = await client.queue("default").pop(worker="me", count=1)
    with pytest.raises(AioqlessError, match="a worker runs"):
        await popped.step("plan", calls.plan, "tea")
