"""Mistakes of callers, and the sentence that says what to write instead."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import aioqless
from aioqless import Client, Job, job
from aioqless.handlers.put_call import unawaited_puts
from aioqless.testing import perform
from tests.unit.records import job_of, read_job_of


@job
async def greet(job: Job, name: str) -> None: ...


# Any: what type checkers find, too, is tried here.
Mistake = Callable[[Any], Any]
any_job: Any = job
any_settings: Any = aioqless.Settings
anything: Any = greet
retry: Any = aioqless.Retry
ada: Any = greet.data("Ada")
steps: Any = aioqless.chain
members: Any = aioqless.group


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda c: c.put(greet, name="x"), "put has no option 'name'; data goes into "
         "`handler.data(name=...)`"),
        (lambda c: c.put(ada, dely=3), "put has no option 'dely'; did you mean 'delay'?"),
        (lambda c: c.put(ada, countdown=3), "put has no option 'countdown': write delay="),
        (lambda c: c.put(ada, timeout=3), "put has no option 'timeout': it is one of @job"),
        (lambda c: c.put(ada, color=3), "put has no option 'color'; it has at, context, "),
        (lambda c: c.put(anything("x")), "to put a job, write `greet.data(...)`"),
        (lambda c: c.put(anything(name="x")), "to put a job, write `greet.data(...)`"),
        (lambda c: c.put_many([greet]), "put_many takes jobs, such as `[handler.data(...)]` "
         "(got Handler("),
        (lambda c: c.put_many(ada), "put_many takes jobs, such as "
         "`[handler.data(...)]` (got NewJob("),
        (lambda c: c.put_many(greet), "put_many takes jobs, such as"),
        (lambda c: c.put_many("abc"), "put_many takes jobs, such as"),
        (lambda _: perform(anything), "perform takes a job: `perform(handler.data(...))` (got "),
        (lambda _: aioqless.Inject(), "write `pool: Pool = Inject`, without parentheses"),
        (lambda c: c.recur(ada, jid="a", evry=3), "recur has no option 'evry'; did you "
         "mean 'every'?"),
        (lambda _: any_job(retry=3), "@job has no option 'retry': write retries="),
        (lambda _: any_job(uniqe=("name",)), "did you mean 'unique'?"),
        (lambda _: any_job(max_retries=3), "@job has no option 'max_retries': write retries="),
        (lambda _: any_job(delay=60), "@job has no option 'delay': it is one of put: write "
         "`client.put(handler.data(...), delay=...)`"),
        (lambda _: any_job(throttle=60), "@job has no option 'throttle': write "
         "limits=[Limit(rate=(number, period))]"),
        (lambda _: any_job(max_concurrency=3), "@job has no option 'max_concurrency': write "
         "limits=[Limit(max_concurrency=...)]"),
        (lambda c: c.put(ada, limit_key="k"), "put has no option 'limit_key': write "
         "limits=[Limit(key, max_concurrency=..., rate=...)]"),
        (lambda c: c.put(ada, unique_until="started"), "write unique=Unique(key, until=...)"),
        (lambda _: anything.using(unique_for=60), "write unique=Unique(key, ttl=...)"),
        (lambda _: ada.with_options(debounce=5), "write unique=Unique(key, debounce=...)"),
        (lambda c: c.recur(ada, jid="a", every=3, fair_by=("name",)), "recur has no option "
         "'fair_by': write fair=Fair(by)"),
        (lambda c: c.put(ada, fair_weight=3), "write fair=Fair(by, weight=...)"),
        (lambda c: c.put(ada, once="order-7"), "put has no option 'once': it is one of put_flow"),
        (lambda c: c.put_flow(ada, delay=60), "put_flow has no option 'delay': a step has it: "
         "`handler.data(...).with_options(...)`"),
        (lambda _: any_settings(concurency=3), "Settings has no option 'concurency'; did you mean "
         "'concurrency'?"),
        (lambda _: any_job(bind=True), "@job has no option 'bind': leave it out, a handler takes "
         "its job as its first parameter"),
        (lambda _: any_job(acks_late=True), "@job has no option 'acks_late': leave it out, a job "
         "is done when its handler has returned"),
        (lambda _: any_job(ignore_result=True), "@job has no option 'ignore_result': leave it out, "
         "a result is kept only with result_ttl="),
        (lambda _: any_job(base=object), "@job has no option 'base': write a middleware, or a "
         "resource that handlers ask for"),
        (lambda _: any_job(run_at_startup=True), "@job has no option 'run_at_startup': write an "
         "`@aioqless.lifespan`"),
        (lambda _: any_job(autoretry_for=(OSError,)), "'autoretry_for': write retry_on="),
        (lambda _: any_job(default_retry_delay=3), "'default_retry_delay': write backoff="),
        (lambda _: any_job(retry_backoff=3), "'retry_backoff': write backoff="),
        (lambda _: any_job(soft_time_limit=3), "'soft_time_limit': write timeout="),
        (lambda _: any_job(job_timeout=3), "'job_timeout': write timeout="),
        (lambda _: any_job(max_tries=3), "'max_tries': write retries=, one less, since the first "
         "run is no retry"),
        (lambda _: any_job(keep_result=3), "'keep_result': write result_ttl="),
        (lambda _: any_job(name="greet"), "'name': write klass="),
        (lambda _: any_job(queue_name="mail"), "'queue_name': write queue="),
        (lambda c: c.put(ada, _defer_by=3), "put has no option '_defer_by': write delay="),
        (lambda c: c.put(ada, _defer_until=3), "put has no option '_defer_until': write at="),
        (lambda c: c.put(ada, _job_id="a"), "put has no option '_job_id': write jid="),
        (lambda c: c.put(ada, _queue_name="mail"), "put has no option '_queue_name': write "
         "queue="),
        (lambda c: c.put(ada, _expires=3), "put has no option '_expires': write expires_in="),
        (lambda c: c.put(ada, depends_on=["a"]), "put has no option 'depends_on': write depends="),
        (lambda c: c.put(ada, at_front=True), "put has no option 'at_front': write priority="),
        (lambda c: c.put(ada, link=ada), "put has no option 'link': write chain(first, next)"),
        (lambda c: c.put(ada, link_error=ada), "put has no option 'link_error': write "
         "handler.data(...).on_failure(...)"),
        (lambda c: c.put(ada, kwargs={}), "put has no option 'kwargs': write `handler.data(...)`"),
        (lambda _: retry(countdown=3), "Retry has no option 'countdown': write delay="),
        (lambda _: retry(defer=3), "Retry has no option 'defer': write delay="),
        (lambda _: retry(eta=3), "Retry has no option 'eta': write delay="),
        (lambda _: retry(exc=OSError()), "Retry has no option 'exc': write `raise Retry(...) from "
         "error`"),
        (lambda _: retry(max_retries=3), "Retry has no option 'max_retries': write "
         "@job(retries=...)"),
        (lambda _: any_job(cron="@daily", timezone="Europe/Pariss")(greet.fn),
         "did you mean 'Europe/Paris'?"),
    ],
)  # fmt: skip
async def test_wrong_argument_names_the_right_one(
    client: Client, mistake: Mistake, says: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(says)):
        if isinstance(result := mistake(client), Awaitable):
            await result


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda c: c.get("a"), "write `client.jobs.get(...)`"),
        (lambda c: c.cancel("a"), "write `client.jobs.cancel(...)`"),
        (lambda c: c.failed_counts(), "write `client.jobs.failed_counts(...)`"),
        (lambda c: c.pause("mail"), "write `client.queue(name).pause(...)`"),
        (lambda c: c.stop("worker"), "write `client.workers.stop(...)`"),
        (lambda c: c.enqueue(greet), "put a job by `await client.put("),
        (lambda _: anything.s("Ada"), "'Handler' object has no attribute 's': make a job by "
         "`handler.data(name=...)`"),
        (lambda _: anything.si("Ada"), "make a job by `handler.data(name=...)`"),
        (lambda _: anything.signature("Ada"), "make a job by `handler.data(name=...)`"),
        (lambda _: anything.delay("Ada"), "put a job by `await handler.put(name=...)`"),
        (lambda _: steps(ada).delay(), "'Chain' object has no attribute 'delay': put it by `await "
         "client.put_flow(...)`"),
        (lambda _: members(ada).apply_async(), "'Group' object has no attribute 'apply_async': put "
         "it by `await client.put_flow(...)`"),
    ],
)  # fmt: skip
async def test_method_of_a_part_is_named(client: Client, mistake: Mistake, says: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(says)):
        mistake(client)


@pytest.mark.parametrize(
    ("job", "name", "says"),
    [
        (job_of(), "events", ": JobRecord has it, `await client.jobs.get(job.jid)`"),
        (job_of(), "unlock", ": JobRecord has it, `await client.jobs.get(job.jid)`"),
        (read_job_of(), "step", ": Job has it, which a handler gets, and `queue.pop` returns"),
        (job_of(), "nonsense", ""),
        (read_job_of(), "nonsense", ""),
    ],
)
def test_name_of_the_other_type_of_jobs_says_where_that_comes_from(
    job: object, name: str, says: str
) -> None:
    kind = type(job).__name__
    with pytest.raises(AttributeError) as missing:
        getattr(job, name)
    assert str(missing.value) == f"{kind!r} object has no attribute {name!r}{says}"


async def test_handler_of_the_main_script_is_not_put(client: Client) -> None:
    async def shout(job: Job, name: str) -> None: ...

    shout.__module__, shout.__qualname__ = "__main__", "shout"
    with pytest.raises(TypeError, match=r"no worker knows klass '__main__.shout'.*@job\(klass="):
        await client.put(job(shout).data("x"))
    await client.put(job(klass="Shout")(shout).data("x"))


def test_client_in_a_plain_with_block_says_async_with() -> None:
    unentered: Any = Client("redis://localhost")
    with pytest.raises(TypeError, match=r"write `async with Client\(\.\.\.\)`.*SyncClient"):  # noqa: SIM117
        with unentered:
            pass


@pytest.mark.parametrize("parts", ["localhost:8100", "localhost", "redis.internal:6379/1"])
def test_url_without_a_scheme_is_completed(parts: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"write redis://{parts}")):
        Client(parts)


def test_url_without_a_scheme_that_may_have_a_password_is_not_shown() -> None:
    with pytest.raises(ValueError, match="must begin with redis://") as refused:
        Client("user:secret@localhost:6379")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Cron", "write `@job(cron=...)`"),
        ("NameTaken", "write `from aioqless.errors import NameTaken`"),
        ("Cliennt", "did you mean 'Client'?"),
        ("actor", "write `@job`"),
        ("Celery", "write `Client()` to put jobs, and `@job` to declare them"),
        ("chord", "write `chain(group(...), last)`"),
        ("create_pool", "write `Client(...)`"),
        ("cron", "write `@job(cron=...)`"),
        ("crontab", "write `@job(cron=...)`"),
        ("periodic_task", "write `@job(every=...)`"),
        ("RedisSettings", "write `Client('redis://...')`"),
        ("run_worker", "write `Worker(client, app.jobs).run()`"),
        ("shared_task", "write `@job`"),
        ("signature", "write `handler.data(...)`"),
        ("task", "write `@job`"),
        ("WorkerSettings", "write `Settings`"),
    ],
)
def test_import_of_a_wrong_name_says_the_right_one(name: str, says: str) -> None:
    with pytest.raises(ImportError, match=re.escape(says)):
        exec(f"from aioqless import {name}", {})
    assert not hasattr(aioqless, name)


def test_import_of_an_unknown_name_fails_as_usual() -> None:
    with pytest.raises(ImportError, match="cannot import name 'zyx'"):
        exec("from aioqless import zyx", {})


def test_put_of_a_handler_that_is_not_awaited_is_an_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any], name: str) -> None: ...

    def view() -> None:  # what a Celery user writes for `.delay()`
        greet.put(name="Ada")  # type: ignore[unused-coroutine]
        greet.using(delay=60).put(name="Bo")  # type: ignore[unused-coroutine]

    view()
    unawaited_puts.clear()  # else the plugin fails this test
    first = view.__code__.co_firstlineno
    found = [
        (record.levelname, *(record.args[name] for name in ("event", "klass", "where")))
        for record in caplog.records
        if isinstance(record.args, dict)
    ]
    assert found == [
        ("ERROR", "put.not_awaited", "Greet", f"{__file__}:{first + line}") for line in (1, 2)
    ]
    assert "SyncClient" in caplog.text and "`await`" in caplog.text


def test_put_of_a_handler_can_be_run_in_every_way_that_a_coroutine_can(
    redis_url: str, namespace: str
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any], name: str = "") -> None: ...

    async def put_all() -> None:
        async with Client(redis_url, namespace=namespace) as client:
            await greet.put(name="awaited")
            await asyncio.create_task(greet.put(name="task"))
            await asyncio.gather(greet.put(), greet.using(priority=1).put())
            await asyncio.wait_for(greet.put(), 60)
            async with asyncio.TaskGroup() as group:
                group.create_task(greet.put())
            assert await client.queue("default").length() == 6
        with pytest.raises(RuntimeError):
            await greet.put()

    asyncio.run(put_all())
    with pytest.raises(RuntimeError, match="no client is open"):
        asyncio.run(greet.put(name="without a client"))
    call = greet.put()
    assert asyncio.iscoroutinefunction(greet.put) and asyncio.iscoroutine(call)
    call.close()
    assert not unawaited_puts
