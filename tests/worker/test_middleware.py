"""Resources, middleware and hooks of a worker."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import aioqless
from aioqless import Client, Fail, Inject, Job, Retry, Worker, job, lifespan, resource
from aioqless.handlers import CallNext
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

seen: list[Any] = []
traced: contextvars.ContextVar[str] = contextvars.ContextVar("traced", default="nothing")


@pytest.fixture(autouse=True)
def fresh() -> None:
    seen.clear()


class Pool:
    open = True


@resource
async def pool() -> AsyncIterator[Pool]:
    pool = Pool()
    yield pool
    pool.open = False


@job
async def store(job: Job[Any], path: str, pool: Pool = Inject, client: Client = Inject) -> None:
    seen.append((path, pool, pool.open, client))


async def test_handler_receives_resources_and_the_client(
    client: Client, work: Work, until: Until
) -> None:
    async with work(store, pool):
        await client.queue("mail").put(store.data(path="a"))
        await client.queue("mail").put(store.data(path="b"))
        await until(lambda: len(seen) == 2)
    (_, first, was_open, its_client), (_, second, *_) = seen
    assert first is second and was_open and its_client is client
    assert not first.open


async def test_worker_with_a_failing_resource_pops_nothing(client: Client, lines: Lines) -> None:
    @resource
    async def broken() -> AsyncIterator[Pool]:
        raise ConnectionError("no database")
        yield

    await client.queue("default").put(store.data(path="a"), jid="a")
    with pytest.raises(ConnectionError, match="no database"):
        await Worker(client, store, broken).run()
    assert lines.of("worker.crashed")
    waiting = await client.jobs.get("a")
    assert waiting and waiting.state == "waiting"


async def test_failing_task_of_a_lifespan_ends_the_worker_which_releases_its_jobs(
    client: Client,
) -> None:
    started = asyncio.Event()

    @job(klass="Endless")
    async def endless(job: Job[Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    async def refresh() -> None:
        await started.wait()
        raise ConnectionError("no rates")

    @lifespan
    async def refreshing() -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(refresh())
            yield
            task.cancel()

    jid = await client.put(endless.data())
    with pytest.raises(ExceptionGroup) as raised:
        await Worker(client, endless, refreshing).run()
    assert raised.group_contains(ConnectionError, match="no rates")
    assert (await jid.job()).state == "waiting"


@aioqless.middleware
async def outer(job: Job[Any], call: CallNext) -> Any:
    seen.append("outer begins")
    try:
        return await call()
    finally:
        seen.append("outer ends")


@aioqless.middleware
async def inner(job: Job[Any], call: CallNext, pool: Pool = Inject) -> Any:
    traced.set(job.jid)
    seen.append(pool.open)
    return await call()


@job
def blocking(job: Job[Any]) -> None:
    seen.append(traced.get())


async def test_middleware_wraps_a_run_first_outermost_and_its_context_reaches_threads(
    client: Client, work: Work, until: Until
) -> None:
    async with work(blocking, pool, outer, inner):
        await client.queue("mail").put(blocking, jid="a")
        await until(lambda: "outer ends" in seen)
    assert seen == ["outer begins", True, "a", "outer ends"]


async def test_exception_of_middleware_is_the_outcome(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @aioqless.middleware
    async def refuse(job: Job[Any], call: CallNext) -> Any:
        raise Fail("we are closed", group="closed")

    async with work(blocking, refuse):
        await client.queue("mail").put(blocking, jid="a")
        await until(lambda: lines.of("job.failed", jid="a", group="closed"))
    assert seen == []


async def test_middleware_sees_jobs_of_unknown_klasses(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    async with work(blocking, outer, unknown_klass_timeout=0):
        await client.queue("mail").put("Nobody")
        await until(lambda: lines.of("job.failed", group="mail-UnknownKlass"))
    assert seen == ["outer begins", "outer ends"]


@aioqless.middleware
async def note_error(job: Job[Any], call: CallNext) -> Any:
    try:
        return await call()
    except Exception as error:
        await asyncio.sleep(0)  # it is no longer canceled
        seen.append(repr(error))
        raise


@job(klass="Long", timeout=0.05)
async def long(job: Job[Any]) -> None:
    await asyncio.sleep(60)


@job(klass="LongInThread", timeout=0.05)
def long_in_thread(job: Job[Any]) -> None:
    while not job.stopped:
        time.sleep(0.01)


@pytest.mark.parametrize("handler", [long, long_in_thread])
async def test_middleware_and_hooks_see_a_timeout(
    client: Client, work: Work, until: Until, handler: aioqless.Handler, lines: Lines
) -> None:
    async with work(handler, pool, note_error, finished):
        await client.queue("mail").put(handler, jid="a")
        await until(lambda: len(seen) == 2)
    error, hook = sorted(seen, key=str, reverse=True)
    assert error == "TimeoutError('it ran for longer than 0.05 s')"
    assert hook[:2] == ("a", "job.failed") and hook[3]["group"] == "mail-timeout"
    assert not lines.of("worker.crashed")


def test_middleware_must_be_a_coroutine_function() -> None:
    with pytest.raises(TypeError, match="must be an `async def`"):
        aioqless.middleware(lambda job, call: call())


@job(klass="Bad")
async def bad(job: Job[Any], error: str) -> None:
    raise {
        "retry": Retry(delay=600),
        "fail": Fail("it broke", group="broken"),
        "error": ValueError("wrong"),
    }[error]


@aioqless.on_finish("job.failed", "job.retried")
async def finished(job: Job[Any], end: str, pool: Pool = Inject, **fields: Any) -> None:
    seen.append((job.jid, end, pool.open, fields))


async def test_finish_hook_gets_the_fields_of_the_log_event(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    async with work(bad, pool, finished):
        mail = client.queue("mail")
        for error in ("fail", "retry", "error"):
            await mail.put(bad.data(error=error), jid=error)
        await mail.put(bad.data(error="retry"), jid="last", retries=0)
        await until(lambda: len(seen) == 4)
    heard = {jid: (end, fields) for jid, end, _, fields in seen}
    assert (
        heard["fail"][0] == heard["error"][0] == heard["last"][0] == "job.failed"
        and heard["retry"][0] == "job.retried"
    )
    assert (heard["fail"][1]["group"], heard["fail"][1]["message"]) == ("broken", "it broke")
    assert heard["retry"][1]["delay"] == 600
    assert [heard[jid][1]["exhausted"] for jid in ("fail", "error", "last")] == [False, False, True]
    assert heard["last"][1]["group"] == "failed-retries-mail"
    assert lines.of("job.failed", jid="last", exhausted=True)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("in_thread", [False, True])
async def test_hook_that_exits_is_logged_and_does_not_end_the_worker(
    client: Client,
    work: Work,
    until: Until,
    lines: Lines,
    error: type[BaseException],
    in_thread: bool,
) -> None:
    def exits(job: Job[Any], end: str, **fields: Any) -> None:
        raise error

    async def exits_on_the_loop(job: Job[Any], end: str, **fields: Any) -> None:
        raise error

    hook = aioqless.on_finish("job.completed")(exits if in_thread else exits_on_the_loop)
    async with work(blocking, hook) as worker:
        await client.queue("mail").put(blocking, jid="a")
        await until(lambda: lines.of("hook.failed", end="job.completed", jid="a"))
        assert worker.healthy


async def test_plain_hook_runs_in_a_thread_with_the_variables_of_the_run(
    client: Client, work: Work, until: Until
) -> None:
    @aioqless.on_finish("job.completed")
    def note(job: Job[Any], end: str, **fields: Any) -> None:
        seen.append((threading.current_thread() is threading.main_thread(), tenant.get()))

    @aioqless.middleware
    async def for_tenant(job: Job[Any], call: CallNext) -> Any:
        tenant.set("acme")
        return await call()

    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    async with work(blocking, note, for_tenant):
        await client.queue("mail").put(blocking)
        await until(lambda: len(seen) == 2)
    assert seen[1] == (False, "acme")


async def test_job_of_a_hook_has_the_state_and_the_failure_that_its_run_ended_with(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Twice", retry_on=OSError, backoff=aioqless.fixed(0))
    async def twice(job: Job[Any], ends: str) -> None:
        if job.remaining == 1:
            raise OSError("first")
        if ends == "fail":
            raise ValueError("second")
        if ends == "snooze":
            raise aioqless.Snooze(600)
        if ends == "exhaust":
            raise OSError("last")
        if ends == "decline":
            raise Fail("told", group="declined")

    @aioqless.on_finish("job.failed", "job.retried", "job.completed", "job.released")
    async def note(job: Job[Any], end: str, **fields: Any) -> None:
        reason = job.failure and (job.failure.group, job.failure.message.strip().splitlines()[-1])
        seen.append((job.data["ends"], end, job.state, job.remaining, reason))

    first = ("mail-OSError", "OSError: first")
    ends = {
        "complete": ("job.completed", "complete", 0, first),
        "snooze": ("job.released", "scheduled", 0, first),
        "fail": ("job.failed", "failed", 0, ("mail-ValueError", "ValueError: second")),
        "exhaust": ("job.failed", "failed", 0, ("mail-OSError", "OSError: last")),
        "decline": ("job.failed", "failed", 0, ("declined", "told")),
    }
    async with work(twice, note):
        jids = {
            name: await client.queue("mail").put(twice.data(ends=name), retries=1) for name in ends
        }
        await until(lambda: len(seen) == 2 * len(ends))
    for name, (end, state, remaining, reason) in ends.items():
        retried, ended = [each[1:] for each in seen if each[0] == name]
        assert retried == ("job.retried", "waiting", 0, first)
        assert ended == (end, state, remaining, reason)
        stored = await client.jobs.get(jids[name])
        assert stored and stored.state == state
        if stored.failure and state == "failed":
            assert (stored.failure.group, stored.failure.message.strip().splitlines()[-1]) == reason


@pytest.mark.parametrize("ends", [(), ("job.exploded",)])
def test_hook_for_an_unknown_event_is_refused(ends: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="on_finish takes some of"):
        aioqless.on_finish(*ends)


async def script_calls(client: Client) -> int:
    return int((await client.redis.info("commandstats"))["cmdstat_evalsha"]["calls"])


async def test_latency_hook_is_called_once_per_delay_of_a_queue(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @aioqless.on_lag(0.05, "slow", "tick", every=0.02)
    async def late(queue: str, seconds: float, pool: Pool = Inject) -> None:
        assert seconds > 0.05 and pool.open
        seen.append(queue)

    slow, tick = client.queue("slow"), client.queue("tick")
    async with work(late, pool):
        await slow.put("Greet")
        await until(lambda: seen == ["slow"])
        await tick.put("Greet")
        await until(lambda: "tick" in seen)  # it has polled again
        assert seen == ["slow", "tick"]
        await slow.pop()
        await tick.pop()
        before = await script_calls(client)

        async def has_polled() -> bool:
            return await script_calls(client) >= before + 10

        await until(has_polled)  # both, while they were empty
        await slow.put("Greet")
        await until(lambda: seen == ["slow", "tick", "slow"])
    assert len(lines.of("queue.lag_exceeded", queue="slow")) == 2


async def test_every_log_line_of_a_worker_has_its_name(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    async with work(blocking, name="ada"):
        await client.queue("mail").put(blocking, jid="a")
        await until(lambda: lines.of("job.completed"))
    assert {line.get("worker") for line in lines.all} == {"ada"}
