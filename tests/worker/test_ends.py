"""How a run ends, and what is stored then."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
from collections.abc import Callable
from typing import Any

import anyio.from_thread
import msgspec
import pytest

from aioqless import Client, Fail, Job, NewJob, Next, Retry, job
from tests.conftest import Until

from .conftest import Lines, Work


async def state_of(client: Client, jid: str) -> str | None:
    found = await client.jobs.get(jid)
    return found.state if found else None


async def after(client: Client, until: Until, jid: str, state: str) -> Job[Any]:
    """The job, when it has come into a state."""

    async def there() -> Job[Any] | None:
        found = await client.jobs.get(jid)
        return found if found and found.state == state else None

    return await until(there)  # type: ignore[no-any-return]


# Completing


async def test_a_handler_that_returns_completes_its_job(client: Client, work: Work, until: Until, lines: Lines) -> None:
    seen = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        seen.append((job.jid, job.data, job.queue, job.state))

    jid = await client.queue("mail").put(greet, {"name": "Ada"})
    async with work(greet):
        done = await after(client, until, jid, "complete")
    assert seen == [(jid, {"name": "Ada"}, "mail", "running")]
    assert [event["what"] for event in done.events] == ["put", "popped", "done"]
    assert lines.of("job.started", jid=jid, klass="Greet", queue="mail")
    assert lines.of("job.completed", jid=jid, klass="Greet", queue="mail")[0]["seconds"] > 0


async def test_a_handler_that_cancels_its_own_task_last_of_all_keeps_nobody_from_storing_its_end(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Last")
    async def last(job: Job[Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async with work(last, concurrency=1):
        jids = [await client.queue("mail").put(last) for _ in range(3)]
        for jid in jids:
            await after(client, until, jid, "complete")


async def test_a_handler_sees_its_jobs_fence_rise_with_each_run(client: Client, work: Work, until: Until) -> None:
    fences = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        fences.append(job.fence)
        if len(fences) < 3:
            raise Retry

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await after(client, until, jid, "complete")
    assert fences[0] < fences[1] < fences[2]


async def test_many_jobs_are_all_done_once(client: Client, work: Work, until: Until) -> None:
    ran: list[int] = []

    @job(klass="Count")
    async def count(job: Job[Any]) -> None:
        ran.append(job.data)

    await client.queue("mail").put_many(NewJob(count, number) for number in range(250))
    async with work(count, concurrency=30):
        await until(lambda: len(ran) >= 250)
    assert sorted(ran) == list(range(250))
    assert len(await client.jobs.complete(count=1000)) == 250


# Going on


async def test_next_sends_the_job_on_under_the_same_jid(client: Client, work: Work, until: Until, lines: Lines) -> None:
    @job(klass="Order")
    async def order(job: Job[Any]) -> Next | None:
        if job.queue == "mail":
            job.data["stage"] = 2
            return Next("billing")
        return None

    jid = await client.queue("mail").put(order, {"stage": 1})
    async with work(order, queues=("mail", "billing")):
        done = await after(client, until, jid, "complete")
    assert done.data == {"stage": 2}
    assert [stage["q"] for stage in done.history] == ["mail", "billing"]
    assert lines.of("job.advanced", jid=jid, queue="mail", to="billing", state="waiting")


async def test_next_may_wait_or_depend_on_others(client: Client, work: Work, until: Until) -> None:
    @job(klass="Order")
    async def order(job: Job[Any]) -> Next:
        return Next("billing", delay=600) if job.jid == "later" else Next("billing", depends=("other",))

    await client.queue("elsewhere").put("Other", jid="other")
    await client.queue("mail").put(order, jid="later")
    await client.queue("mail").put(order, jid="held")
    async with work(order):
        await after(client, until, "later", "scheduled")
        held = await after(client, until, "held", "depends")
    assert held.dependencies == ["other"]


# Again


async def test_retry_runs_it_again_at_the_cost_of_a_retry(client: Client, work: Work, until: Until, lines: Lines) -> None:
    remaining = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        remaining.append(job.remaining)
        if len(remaining) < 3:
            raise Retry(group="busy", message="come back")

    jid = await client.queue("mail").put(greet, retries=2)
    async with work(greet):
        await after(client, until, jid, "complete")
    assert remaining == [2, 1, 0]
    assert [line["remaining"] for line in lines.of("job.retried", jid=jid)] == [1, 0]


async def test_retry_may_wait(client: Client, work: Work, until: Until) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise Retry(600)

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        again = await after(client, until, jid, "scheduled")
    assert again.remaining == 4


async def test_without_retries_left_it_fails(client: Client, work: Work, until: Until) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise Retry

    jid = await client.queue("mail").put(greet, retries=0)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "failed-retries-mail"


# Failing


async def test_fail_fails_it_in_the_group_that_was_named(client: Client, work: Work, until: Until, lines: Lines) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise Fail("bad-address", "no postcode")

    jid = await client.queue("mail").put(greet)
    async with work(greet) as worker:
        failed = await after(client, until, jid, "failed")
    assert failed.failure and (failed.failure.group, failed.failure.message) == ("bad-address", "no postcode")
    assert failed.failure.worker == worker.name
    assert lines.of("job.failed", jid=jid, group="bad-address", message="no postcode")


async def test_an_exception_fails_it_in_a_group_of_its_own_with_a_traceback_from_the_handler_on(
    client: Client, work: Work, until: Until
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise LookupError("no such word")

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-LookupError"
    told = failed.failure.message
    assert 'raise LookupError("no such word")' in told and told.endswith("LookupError: no such word\n")
    assert "perform.py" not in told and "runner.py" not in told
    assert await client.jobs.failed() == {"mail-LookupError": 1}


async def test_a_handler_that_wants_to_end_the_process_fails_and_the_worker_goes_on(client: Client, work: Work, until: Until) -> None:
    @job(klass="Quit")
    async def leave(job: Job[Any]) -> None:
        sys.exit("that's all")

    @job(klass="QuitInAThread")
    def leave_thread(job: Job[Any]) -> None:
        sys.exit("that's all")

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    jids = [await client.queue("mail").put(leave), await client.queue("mail").put(leave_thread)]
    async with work(leave, leave_thread, greet) as worker:
        for jid in jids:
            failed = await after(client, until, jid, "failed")
            assert failed.failure and failed.failure.group == "mail-SystemExit"
        await after(client, until, await client.queue("mail").put(greet), "complete")
        assert worker.healthy


async def test_a_group_of_what_is_no_exception_fails_it_too(client: Client, work: Work, until: Until) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise BaseExceptionGroup("both", [GeneratorExit(), ValueError()])

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-BaseExceptionGroup"


async def test_a_task_that_the_handler_cancelled_itself_is_an_exception_like_others(client: Client, work: Work, until: Until) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-CancelledError"


@pytest.mark.parametrize(("name", "group"), [("a\nb", "mail-a?b"), ("x" * 600, "x" * 512)])
async def test_an_exception_whose_name_cannot_be_a_group_fails_in_the_nearest(
    client: Client, work: Work, until: Until, name: str, group: str
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise type(name, (Exception,), {})

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == group


@pytest.mark.parametrize("error", [ValueError("\ud800 \x00"), Fail("typo", "\udfff"), Retry(group="typo", message="\ud800")])
async def test_a_message_that_is_not_unicode_is_written_out(client: Client, work: Work, until: Until, error: Exception) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise error

    jid = await client.queue("mail").put(greet, retries=0)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and "\\ud" in failed.failure.message


async def test_an_end_that_redis_cannot_take_fails_the_job(client: Client, work: Work, until: Until) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise Retry(1e300)

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-InvalidArgument" and "delay" in failed.failure.message


async def test_an_end_made_without_what_it_needs_counts_as_what_it_is(client: Client, work: Work, until: Until) -> None:
    class Soon(Retry):
        def __init__(self) -> None: ...

    class Bad(Fail):
        def __init__(self) -> None: ...

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        raise Soon if job.remaining > 4 else Bad

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        failed = await after(client, until, jid, "failed")
    assert failed.remaining == 4 and failed.failure and failed.failure.group == "mail-Bad"


async def test_an_unknown_klass_fails_in_a_group_of_its_own_and_can_be_put_back(client: Client, work: Work, until: Until) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    jid = await client.queue("mail").put("os.system", "rm -rf /")
    async with work():
        failed = await after(client, until, jid, "failed")
        assert failed.failure and failed.failure.group == "mail-UnknownKlass"
        assert "no handler here claims 'os.system'" in failed.failure.message
    assert await client.queue("mail").unfail("mail-UnknownKlass") == 1


async def test_data_that_the_handler_cannot_take_fail_in_a_group_of_their_own(client: Client, work: Work, until: Until) -> None:
    @job(klass="Resize")
    async def resize(job: Job[Any], path: str) -> None: ...

    jid = await client.queue("mail").put("Resize", {"path": 7})  # as another client would
    async with work(resize):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-InvalidData"
    assert "Expected `str`, got `int`" in failed.failure.message


async def test_data_that_are_no_json_fail_when_they_are_read_and_not_before(client: Client, work: Work, until: Until) -> None:
    @job(klass="Look")
    async def look(job: Job[Any]) -> None:
        if job.jid == "reads":
            job.data  # noqa: B018

    for jid in ("reads", "ignores"):
        await client.queue("mail").put(look, jid=jid)
        await client.redis.hset(f"{client.namespace}:j:{jid}", "data", "{nonsense")
    async with work(look):
        failed = await after(client, until, "reads", "failed")
        await after(client, until, "ignores", "complete")
    assert failed.failure and failed.failure.group == "mail-InvalidData"


# What the handler does itself


@pytest.mark.parametrize(
    ("verb", "state"), [("complete", "complete"), ("fail", "failed"), ("retry", "scheduled"), ("release", "scheduled")]
)
async def test_a_job_that_its_handler_ended_itself_is_left_as_it_is(
    client: Client, work: Work, until: Until, lines: Lines, verb: str, state: str
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        match verb:
            case "complete":
                await job.complete()
            case "fail":
                await job.fail("typo", "no such word")
            case "retry":
                await job.retry(600)
            case _:
                await job.release(600)

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await until(lambda: lines.of("job.settled", jid=jid, error=None))
        assert await state_of(client, jid) == state
    assert not lines.of("job.completed") and not lines.of("job.lock_lost") and not lines.of("job.refused")


async def test_a_handler_that_completed_its_job_may_go_on_for_longer_than_a_lock(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    await client.config.set("heartbeat", 0.3)
    tidied = asyncio.Event()

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        await job.complete()
        await asyncio.sleep(0.7)
        tidied.set()

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await until(lambda: lines.of("job.settled", jid=jid))
    assert tidied.is_set()


async def test_what_breaks_after_a_handler_ended_its_job_is_told(client: Client, work: Work, until: Until, lines: Lines) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        await job.complete()
        raise ValueError("too late")

    jid = await client.queue("mail").put(greet)
    async with work(greet):
        await until(lambda: lines.of("job.settled", jid=jid, error="ValueError('too late')"))


# Data


async def test_changed_data_are_stored_when_the_job_completes(client: Client, work: Work, until: Until) -> None:
    @job(klass="Count")
    async def count(job: Job[Any]) -> None:
        job.data["n"] += 1

    jid = await client.queue("mail").put(count, {"n": 1, "rest": []})
    async with work(count):
        done = await after(client, until, jid, "complete")
    assert done.data == {"n": 2, "rest": []}


@pytest.mark.parametrize("text", ['{ "a" : [ ], "n": 12345678901234567890, "f": 1.0 }', "[]", '"ä\\u00e4"', "1.50", '{"a":{},"a":1}'])
async def test_data_that_were_read_and_not_changed_stay_byte_for_byte(client: Client, work: Work, until: Until, text: str) -> None:
    read = []

    @job(klass="Look")
    async def look(job: Job[Any]) -> None:
        read.append(job.data)

    jid = await client.queue("mail").put(look, msgspec.Raw(text.encode()))
    async with work(look):
        done = await after(client, until, jid, "complete")
    assert done.raw_data == text and len(read) == 1


@pytest.mark.parametrize("text", ["NaN", '{"a": "\\ud800"}', "[1e999]"])
async def test_odd_data_of_another_client_do_no_harm_when_read(client: Client, work: Work, until: Until, text: str) -> None:
    @job(klass="Look")
    async def look(job: Job[Any]) -> None:
        job.data  # noqa: B018

    jid = await client.queue("mail").put(look)
    await client.redis.hset(f"{client.namespace}:j:{jid}", "data", text)
    async with work(look):
        done = await after(client, until, jid, "complete")
    assert done.raw_data == text


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


async def test_typed_data_keep_what_their_type_does_not_know(client: Client, work: Work, until: Until) -> None:
    @job(klass="Move")
    async def move(job: Job[Point]) -> None:
        if job.jid == "moves":
            job.data.x += 1

    text = '{"x": 1, "y": 2, "added": [ ]}'
    await client.queue("mail").put(move, msgspec.Raw(text.encode()), jid="stays")
    await client.queue("mail").put(move, msgspec.Raw(text.encode()), jid="moves")
    async with work(move):
        assert (await after(client, until, "stays", "complete")).raw_data == text
        assert (await after(client, until, "moves", "complete")).data == {"x": 2, "y": 2, "added": []}


async def test_data_that_cannot_be_stored_fail_the_job(client: Client, work: Work, until: Until) -> None:
    @job(klass="Spoil")
    async def spoil(job: Job[Any]) -> None:
        job.data["object"] = object()

    jid = await client.queue("mail").put(spoil, {})
    async with work(spoil):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-InvalidData" and failed.data == {}


# Threads


async def test_plain_functions_run_in_threads_beside_each_other(client: Client, work: Work, until: Until) -> None:
    meeting = threading.Barrier(3, timeout=5)

    @job(klass="Meet")
    def meet(job: Job[Any]) -> None:
        meeting.wait()

    jids = [await client.queue("mail").put(meet) for _ in range(3)]
    async with work(meet):
        for jid in jids:
            await after(client, until, jid, "complete")


async def test_there_are_no_more_threads_than_was_said(client: Client, work: Work, until: Until) -> None:
    inside, most, ran = 0, 0, 0
    lock = threading.Lock()

    @job(klass="Count")
    def count(job: Job[Any]) -> None:
        nonlocal inside, most, ran
        with lock:
            inside += 1
            most = max(most, inside)
        threading.Event().wait(0.01)
        with lock:
            inside -= 1
            ran += 1

    for _ in range(12):
        await client.queue("mail").put(count)
    async with work(count, threads=2, concurrency=8):
        await until(lambda: ran == 12)
    assert most == 2


async def test_an_exception_in_a_thread_fails_the_job_with_its_traceback(client: Client, work: Work, until: Until) -> None:
    @job(klass="Break")
    def broken(job: Job[Any]) -> None:
        raise LookupError("no such word")

    jid = await client.queue("mail").put(broken)
    async with work(broken):
        failed = await after(client, until, jid, "failed")
    assert failed.failure and failed.failure.group == "mail-LookupError"
    assert 'raise LookupError("no such word")' in failed.failure.message
    assert "anyio" not in failed.failure.message


async def test_a_thread_may_use_its_jobs_verbs_through_the_loop(client: Client, work: Work, until: Until) -> None:
    @job(klass="Page")
    def page(job: Job[Any]) -> None:
        job.data["page"] = 2
        anyio.from_thread.run(job.heartbeat)
        anyio.from_thread.run(job.log, "halfway")

    jid = await client.queue("mail").put(page, {"page": 1})
    async with work(page):
        done = await after(client, until, jid, "complete")
    assert done.data == {"page": 2} and "halfway" in [event["what"] for event in done.events]


async def test_lines_that_a_thread_logs_name_the_job(client: Client, work: Work, until: Until, lines: Lines) -> None:
    from aioqless.log import log

    @job(klass="Tell")
    def tell(job: Job[Any]) -> None:
        log.info("told")

    jid = await client.queue("mail").put(tell)
    async with work(tell):
        await until(lambda: lines.of("told", jid=jid, klass="Tell", queue="mail"))


@pytest.mark.parametrize("backoff", [lambda used: 1 / 0, lambda used: "soon", lambda used: float("inf")])
async def test_a_backoff_that_cannot_be_fails_the_job_and_not_the_worker(
    client: Client, work: Work, until: Until, backoff: Callable[[int], Any]
) -> None:
    @job(klass="Greet", retry_on=(LookupError,), backoff=backoff)
    async def greet(job: Job[Any]) -> None:
        raise LookupError("no such word")

    jid = await client.queue("mail").put(greet)
    async with work(greet) as worker:
        failed = await after(client, until, jid, "failed")
        assert worker.healthy
    assert failed.failure and failed.failure.group in ("mail-ZeroDivisionError", "mail-TypeError", "mail-InvalidArgument")


async def test_an_end_that_cannot_be_said_spoils_no_others(client: Client, work: Work, until: Until, lines: Lines) -> None:
    @job(klass="Odd")
    async def odd(job: Job[Any]) -> None:
        end = Retry()
        end.message = object()  # type: ignore[assignment]
        raise end

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    jids = [await client.queue("mail").put(each) for each in (odd, greet, odd, greet)]
    async with work(odd, greet) as worker:
        await until(lambda: len(lines.of("job.refused")) == 2)
        for jid in (jids[1], jids[3]):
            await after(client, until, jid, "complete")
        assert worker.healthy
