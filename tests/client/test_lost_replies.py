"""Operations are executed once and return their results although a reply is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
from redis import exceptions

from aioqless import (
    Client,
    Fail,
    Job,
    JobRecord,
    Key,
    NewJob,
    Next,
    QueueFull,
    Retry,
    Settings,
    Worker,
    chain,
    group,
)
from aioqless import job as handler
from aioqless.client.job import JobRun
from aioqless.client.job.reading import read_job
from aioqless.store import script_store
from aioqless.store.script_composer import compose
from aioqless.worker import ReconnectDelays
from tests.client.proxy import Proxy
from tests.conftest import Until
from tests.lua.story import Story
from tests.server import OwnServer

Operation: TypeAlias = Callable[[Client], Awaitable[Any]]


class Clock:
    """The same times in both namespaces, so that all stored values can be compared."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def holding(jid: str, act: Callable[[Job], Awaitable[Any]]) -> Operation:
    """Return an operation of the worker that holds a job."""

    async def operation(client: Client) -> Any:
        backend = client.internals.backend
        return await act(Job(JobRun(backend, await read_job(backend, jid))))

    return operation


async def changed(held: Job) -> Any:
    held.data["seen"] = [1, 2]
    return await held.complete()


async def damage_and_fix(client: Client) -> Any:
    """Damage a key and repair it with `check`."""
    await client.redis.zadd(f"{client.namespace}:q:mail-work", {"ghost": 1})
    return await client.check(resolve=True)


def mail(act: Callable[[Any], Awaitable[Any]]) -> Operation:
    return lambda client: act(client.queue("mail"))


def flow() -> Any:
    return chain(NewJob("A", jid="one"), group(NewJob("B", jid="two"), NewJob("C", jid="three")))


NEW = ("put", "put a few", "put a flow")

# Operations of a client by command, in a namespace where ann runs `a`, `idle` waits, `held` depends
# on `a`, and `bad` has failed. (tests/lua/test_requests.py has each command that writes.)
OPERATIONS: list[tuple[str, str, Operation]] = [
    ("put", "put", mail(lambda queue: queue.put("Greet", {"n": 1}, jid="new", tags=["x"],
        delay=5))),
    ("put", "put again", mail(lambda queue: queue.put("Greet", {"n": 1}, jid="a"))),
    ("put", "put a second unique one",
        mail(lambda queue: queue.put("Greet", jid="new", unique=Key("taken")))),
    ("put_many", "put many",
        mail(lambda queue: queue.put_many(NewJob("Greet",
            jid=f"n{number}") for number in range(250)))),
    ("put_many", "put a few",
        mail(lambda queue: queue.put_many(NewJob("Greet",
            jid=f"n{number}") for number in range(5)))),
    ("put_flow", "put a flow", mail(lambda queue: queue.put_flow(flow()))),
    ("pop", "pop", mail(lambda queue: queue.pop(1))),
    ("complete", "complete with data", holding("a", changed)),
    ("cancel", "cancel", lambda client: client.jobs.cancel("idle", "nobody")),
    ("clear", "clear", mail(lambda queue: queue.clear(["waiting", "depends", "failed"]))),
    ("check", "check", damage_and_fix),
    ("revive", "revive a group", lambda client: client.jobs.retry_group("typo", 5)),
    ("set_close", "a set is closed", lambda client: client.job_set("old").close()),
    ("move", "jobs are moved", lambda client: client.jobs.move_many(["idle"], "post")),
]  # fmt: skip


async def build(client: Client, clock: Clock) -> None:
    queue = client.queue("mail")
    await queue.put("Greet", jid="bad")
    (bad,) = await queue.pop()
    await bad.fail("no such word", group="typo")
    clock.now += 1
    await queue.put("Greet", {"n": 0}, jid="a", unique=Key("taken"))
    await queue.pop()
    await queue.put("Greet", jid="idle", tags=["x"])
    await queue.put("Greet", jid="held", depends=["a"])
    await client.job_set("old").put("Greet", jid="member", queue="sets")


def plain(answer: Any) -> Any:
    """Return an answer as comparable values."""
    match answer:
        case Job() | JobRecord():
            return {
                name: getattr(answer, name)
                for name in ("jid", "queue", "klass", "priority", "tags")
            }
        case list() | tuple():
            return [plain(each) for each in answer]
        case Exception():
            return repr(answer)
    return answer


@asynccontextmanager
async def namespace_pair(url: str, namespace: str, **options: Any) -> AsyncIterator[Client]:
    clock = Clock()
    async with Client(url, namespace=namespace, name="ann", clock=clock, **options) as client:
        await build(client, clock)
        yield client


async def contents(client: Client) -> dict[str, Any]:
    """Return all keys of the namespace."""
    return await Story(client.internals.store, client.redis).all_keys()


@pytest.mark.parametrize(
    "does",
    [row[2] for row in OPERATIONS],
    ids=[row[1] for row in OPERATIONS],
)
async def test_operation_with_lost_replies_is_executed_once_and_returns_its_result(
    redis_url: str,
    namespace: str,
    proxy: Proxy,
    does: Operation,
) -> None:
    async with namespace_pair(redis_url, f"{namespace}-good") as undisturbed:
        answer = plain(await does(undisturbed))
        expected = await contents(undisturbed)
    async with namespace_pair(proxy.url, f"{namespace}-bad") as disturbed:
        proxy.about, proxy.drop_firsts = b"EVAL", True
        assert plain(await does(disturbed)) == answer
        proxy.drop_firsts = False
        assert await contents(disturbed) == expected
    assert proxy.dropped


async def test_worker_with_lost_replies_runs_each_job_once(
    client: Client, proxied_client: Client, proxy: Proxy, until: Until
) -> None:
    ran: Counter[str] = Counter()

    @handler(klass="End", retries=3)
    async def end(job: Job[Any], how: str) -> Next | None:
        ran[job.jid] += 1
        await asyncio.sleep(0.02)
        if how == "fail":
            raise Fail("no such word", group="typo")
        if how == "retry" and job.remaining == 3:
            raise Retry(delay=0.1)
        return Next("post") if how == "next" and job.queue == "mail" else None

    hows = ["complete", "fail", "retry", "next"] * 10
    jids = await client.queue("mail").put_many(
        NewJob(end, {"how": how}, jid=f"{how}-{n}") for n, how in enumerate(hows)
    )
    proxy.about, proxy.drop_firsts = b"EVAL", True
    async with Worker(
        proxied_client,
        end,
        settings=Settings(
            queues=("mail", "post"), poll=0.1, reconnect=ReconnectDelays(first=0.01, longest=0.02)
        ),
    ):
        await until(client.jobs.failed_counts, 30)

        async def through() -> bool:
            return {found.state for found in await client.jobs.multiget(*jids)} <= {
                "complete",
                "failed",
            }

        await until(through, 30)
        proxy.drop_firsts = False
    assert await client.jobs.failed_counts() == {"typo": 10}
    assert len(await client.jobs.complete_jids(count=100)) == 30
    assert ran == {jid: 2 if jid.startswith(("retry", "next")) else 1 for jid in jids}
    assert await client.check() == []


@pytest.mark.parametrize(
    ("command", "put"), [(row[0], row[2]) for row in OPERATIONS if row[1] in NEW], ids=NEW
)
async def test_put_whose_reply_was_lost_before_redis_was_full_is_not_reported_as_refused(
    own_server: OwnServer, monkeypatch: pytest.MonkeyPatch, command: str, put: Operation
) -> None:
    async with (
        Proxy(own_server.url) as proxy,
        namespace_pair(own_server.url, "good") as undisturbed,
        namespace_pair(proxy.url, "bad") as client,
    ):
        await undisturbed.redis.script_load(compose(command, "bad").text)
        answer = plain(await put(undisturbed))
        sleep = asyncio.sleep

        async def fill(seconds: float) -> None:
            await undisturbed.redis.config_set("maxmemory", 1)
            await sleep(seconds)

        monkeypatch.setattr(asyncio, "sleep", fill)
        proxy.about, proxy.drop = b"EVAL", 1
        assert plain(await put(client)) == answer
        monkeypatch.undo()
        assert await contents(client) == await contents(undisturbed)


async def test_put_that_never_arrived_is_refused_once_redis_is_full(
    own_server: OwnServer,
) -> None:
    async with (
        Proxy(own_server.url) as proxy,
        Client(proxy.url) as client,
        Client(own_server.url) as direct,
    ):
        await client.queue("mail").put("Greet")
        await direct.redis.config_set("maxmemory", 1)
        proxy.about, proxy.cut = b"EVAL", 1
        with pytest.raises(QueueFull):
            await client.queue("mail").put("Greet")
        assert proxy.cut == 0
        assert await direct.queue("mail").length() == 1


async def test_call_is_not_repeated_after_the_retry_window(
    client: Client, proxied_client: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_store, "RETRY_WINDOW", 0.3)
    proxy.about, proxy.delay, proxy.seconds = b"EVAL", 1, 30
    with pytest.raises(exceptions.TimeoutError):
        await proxied_client.queue("mail").put("Greet")
    assert proxy.delay == 0
    assert await client.queue("mail").length() <= 1
