"""Mistakes of callers, and the sentence that says what to write instead."""

from __future__ import annotations

import ast
import asyncio
import datetime
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import aioqless
from aioqless import Client, Job, job
from aioqless.handlers.put_call import unawaited_puts
from aioqless.testing import perform
from tests.unit.records import job_of, read_job_of


@job(klass="Greet", queue="mail")
async def greet(job: Job, name: str) -> None: ...


@job(klass="Kept", queue="mail", result_ttl=60)
async def kept(job: Job) -> int:
    return 1


def read_mistakes() -> list[tuple[str, str]]:
    """Read programs, and behind each, indented, its message."""
    text = Path(__file__).with_name("mistakes.txt").read_text("utf-8")
    found = []
    for part in text.strip().split("\n\n"):
        *program, message = part.splitlines()
        found.append(("\n".join(program), message.strip()))
    return found


@pytest.mark.parametrize(("program", "message"), read_mistakes())
async def test_mistake_is_answered_by_what_to_write(
    client: Client, redis_url: str, program: str, message: str
) -> None:
    """The programs and their whole messages are in mistakes.txt."""
    async with Client(redis_url) as closed:
        pass
    names = {
        **{name: getattr(aioqless, name) for name in aioqless.__all__},
        **{"asyncio": asyncio, "datetime": datetime, "partial": partial, "Path": Path},
        **{"perform": perform, "c": client, "closed": closed, "url": redis_url},
        **{"greet": greet, "plain": greet.fn, "kept": kept, "ada": greet.data("Ada")},
        "__name__": "app.jobs",
    }
    code = compile(program, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    with pytest.raises(Exception) as raised:
        if (waits := eval(code, names)) is not None:
            await waits
    assert f"{type(raised.value).__name__}: {raised.value}" == message


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
