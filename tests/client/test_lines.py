"""Lines to Redis break, stall and are held on to: no call is carried out twice, and none is taken for refused that got through."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from redis import exceptions

from aioqless import Client, Job, LockLost, NewJob, QueueFull, Settings, Worker, WrongState, job
from aioqless.errors import StaleRequest
from tests.conftest import Until
from tests.server import OwnServer

from .proxy import Proxy

Spoil = Callable[[Proxy], None]


def drop(proxy: Proxy) -> None:
    """The reply gets lost after the request got through, and the line ends."""
    proxy.drop = 1


def cut(proxy: Proxy) -> None:
    """The line ends before the request gets through."""
    proxy.cut = 1


def stall(proxy: Proxy) -> None:
    """The reply comes when nobody waits for it any more."""
    proxy.delay, proxy.seconds = 1, 0.5


spoils = pytest.mark.parametrize("spoil", [drop, cut, stall])


async def warm(client: Client) -> None:
    """Let Redis know the scripts, so that what is spoiled is the call itself."""
    queue = client.queue("warm")
    await queue.put("Warm", jid="warm")
    (warm,) = await queue.pop()
    await warm.retry()
    (warm,) = await queue.pop()
    await warm.release()
    (warm,) = await queue.pop()
    await warm.heartbeat()
    await warm.complete()
    await queue.put_many([NewJob("Warm", jid="warm"), NewJob("Warm", jid="other")])
    (warm,) = await queue.pop()
    await warm.fail("typo", "x")
    await queue.unfail("typo")
    await client.jobs.cancel("warm", "other")


@spoils
async def test_a_job_is_put_once(client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil) -> None:
    await warm(client)
    spoil(proxy)
    jid = await spoiled.queue("mail").put("Greet")
    assert proxy.drop == proxy.cut == proxy.delay == 0
    found = await client.jobs.get(jid)
    assert found and [event["what"] for event in found.events] == ["put"]
    assert await client.queue("mail").length() == 1


@spoils
async def test_many_jobs_are_put_once(client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil) -> None:
    await warm(client)
    spoil(proxy)
    jids = await spoiled.queue("mail").put_many(NewJob("Greet") for _ in range(150))
    assert await client.queue("mail").length() == len(set(jids)) == 150
    assert all(len(found.events) == 1 for found in await client.jobs.multiget(*jids))


@spoils
async def test_a_pop_locks_no_more_jobs_than_it_returns(client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil) -> None:
    await warm(client)
    for jid in "ab":
        await client.queue("mail").put("Greet", jid=jid)
    spoil(proxy)
    assert [popped.jid for popped in await spoiled.queue("mail").pop()] == ["a"]
    counts = await client.queue("mail").counts()
    assert (counts["running"], counts["waiting"]) == (1, 1)


async def do_complete(job: Job[Any]) -> Any:
    return await job.complete()


async def do_advance(job: Job[Any]) -> Any:
    return await job.complete("billing")


async def do_fail(job: Job[Any]) -> Any:
    return await job.fail("typo", "no such word")


async def do_retry(job: Job[Any]) -> Any:
    return await job.retry()


async def do_release(job: Job[Any]) -> Any:
    return await job.release()


@spoils
@pytest.mark.parametrize(
    ("verb", "answer", "state", "remaining", "events"),
    [
        (do_complete, "complete", "complete", 5, 3),
        (do_advance, "waiting", "waiting", 5, 4),
        (do_fail, None, "failed", 5, 3),
        (do_retry, 4, "waiting", 4, 2),
        (do_release, "waiting", "waiting", 5, 3),
    ],
)
async def test_an_end_that_got_through_is_not_reported_lost_nor_counted_twice(
    client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil, verb: Callable[[Job[Any]], Awaitable[Any]], answer: Any, state: str,
    remaining: int, events: int,
) -> None:  # fmt: skip
    await warm(client)
    await client.queue("mail").put("Greet", jid="a")
    (running,) = await spoiled.queue("mail").pop()
    spoil(proxy)
    assert await verb(running) == answer
    found = await client.jobs.get("a")
    assert found and (found.state, found.remaining, len(found.events)) == (state, remaining, events)


@spoils
async def test_unfailing_moves_no_more_than_was_asked_for(client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil) -> None:
    await warm(client)
    for jid in "ab":
        await client.queue("mail").put("Greet", jid=jid)
        (running,) = await client.queue("mail").pop()
        await running.fail("typo", "x")
    spoil(proxy)
    assert await spoiled.queue("mail").unfail("typo", 1) == 1
    assert await client.jobs.failed() == {"typo": 1}


@spoils
async def test_reading_goes_on(client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil) -> None:
    await client.queue("mail").put("Greet", jid="a")
    await client.jobs.get("a")
    spoil(proxy)
    found = await spoiled.jobs.get("a")
    assert found and found.jid == "a"


async def test_a_line_that_breaks_again_and_again_is_told_as_such_and_the_job_was_put_once(
    client: Client, spoiled: Client, proxy: Proxy
) -> None:
    await warm(client)
    proxy.drop = 3
    with pytest.raises(exceptions.ConnectionError):
        await spoiled.queue("mail").put("Greet")
    assert await client.queue("mail").length() == 1
    await spoiled.queue("mail").put("Greet")
    assert await client.queue("mail").length() == 2


async def test_a_redis_that_never_answers_is_given_up(proxy: Proxy, namespace: str) -> None:
    proxy.delay, proxy.seconds = 10, 5
    async with Client(proxy.url, namespace=namespace, timeout=0.05) as client:
        with pytest.raises(exceptions.TimeoutError, match=r"Redis did not answer within 0\.05 s"):
            await client.queue("mail").length()


async def test_a_redis_that_is_not_there_is_told_with_its_address_but_not_its_password(proxy: Proxy) -> None:
    await proxy.close()
    async with Client(f"redis://user:secret@127.0.0.1:{proxy.port}") as client:
        with pytest.raises(exceptions.ConnectionError, match=rf"can't connect to Redis at .*127\.0\.0\.1:{proxy.port}") as told:
            await client.queue("mail").length()
    assert "secret" not in str(told.value)


async def test_a_client_connects_again_by_itself(spoiled: Client, proxy: Proxy) -> None:
    await spoiled.queue("mail").put("Greet")
    await proxy.close()
    with pytest.raises(exceptions.ConnectionError):
        await spoiled.queue("mail").put("Greet")
    await proxy.open()
    await spoiled.queue("mail").put("Greet")
    assert await spoiled.queue("mail").length() == 2


async def test_a_repeated_request_that_comes_late_is_not_carried_out(client: Client) -> None:
    put = {"queue": "mail", "klass": "Greet", "data": "1", "delay": 0}
    await client.scripts("put", jid="first", request="line:2", **put)
    with pytest.raises(StaleRequest):
        await client.scripts("put", jid="late", request="line:1", **put)
    assert await client.jobs.get("late") is None


async def test_calls_side_by_side_have_identities_of_their_own(client: Client) -> None:
    jobs = await asyncio.gather(*(client.scripts("put", queue="mail", jid=f"j{n}", klass="K", data="1", delay=0) for n in range(50)))
    assert jobs == [f"j{n}" for n in range(50)]
    kept = [key async for key in client.redis.scan_iter(f"{client.namespace}:x:request:*", count=1000)]
    for _ in range(3):
        await asyncio.gather(*(client.scripts("put", queue="mail", jid=f"j{n}", klass="K", data="1", delay=0) for n in range(50)))
    assert len([key async for key in client.redis.scan_iter(f"{client.namespace}:x:request:*", count=1000)]) == len(kept) == 50


async def test_flushing_the_scripts_goes_unnoticed(client: Client) -> None:
    queue = client.queue("mail")
    for number in range(5):
        await client.redis.script_flush()
        jid = await queue.put("Greet")
        await client.redis.script_flush()
        (running,) = await queue.pop()
        await client.redis.script_flush()
        assert running.jid == jid and await running.complete() == "complete"
        await client.redis.script_flush()
        assert len(await client.jobs.complete()) == number + 1


async def test_flushing_the_scripts_between_and_during_many_calls_goes_unnoticed(client: Client) -> None:
    async def flush() -> None:
        for _ in range(20):
            await client.redis.script_flush()

    jids, _ = await asyncio.gather(asyncio.gather(*(client.queue(f"q{n % 7}").put("Greet") for n in range(100))), flush())
    assert len(set(jids)) == 100 and sum([await client.queue(f"q{n}").length() for n in range(7)]) == 100


async def test_a_call_that_is_cancelled_at_any_moment_leaves_the_client_usable(client: Client, spoiled: Client, proxy: Proxy) -> None:
    """Replies are not mixed up: each of the calls beside it and after it gets its own."""
    chance = random.Random(7)
    mail = spoiled.queue("mail")
    await warm(client)
    for jid in "abcdef":
        await client.queue("mail").put("Greet", {"jid": jid}, jid=jid)
    for number in range(150):
        calls = [mail.put("Greet", jid=f"j{number}"), spoiled.jobs.get("b"), mail.length(), mail.counts()]
        victim = asyncio.ensure_future(chance.choice(calls))
        beside = asyncio.ensure_future(spoiled.jobs.get("c"))
        for call in calls:
            call.close()
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        victim.cancel()
        await asyncio.wait([victim])
        found, after = await asyncio.gather(beside, spoiled.jobs.get("d"))
        assert found and after and (found.data, after.data) == ({"jid": "c"}, {"jid": "d"})
    assert proxy.connections == 1
    assert await mail.length() == len(set(await client.queue("mail").jobs("waiting", count=1000)))


async def test_leaving_the_client_ends_its_connections_and_what_was_under_way(proxy: Proxy, namespace: str, until: Until) -> None:
    async with Client(proxy.url, namespace=namespace) as client:
        await client.queue("mail").put("Greet")
        proxy.delay, proxy.seconds = 1, 5
        waiting = asyncio.ensure_future(client.queue("mail").put("Greet"))
        await until(lambda: proxy.delay == 0)
    with pytest.raises(exceptions.ConnectionError):
        await waiting
    assert proxy.connections == 1


# What else a server may answer


async def test_a_full_redis_takes_nothing_new_and_lets_all_else_be_worked_off(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        queue = client.queue("mail")
        for _ in range(4):
            await queue.put("Greet")
        await client.redis.config_set("maxmemory", 1)
        with pytest.raises(QueueFull, match="put: Redis is at its maxmemory and takes nothing new; work jobs off or raise the limit"):
            await queue.put("Greet")
        with pytest.raises(QueueFull):
            await queue.put_many([NewJob("Greet"), NewJob("Greet")])
        jobs = await queue.pop(4)
        await jobs[0].heartbeat()
        assert await jobs[0].complete() == "complete"
        assert await jobs[1].retry() == 4
        await jobs[2].fail("typo", "x")
        assert await jobs[3].cancel()
        await client.redis.config_set("maxmemory", 0)
        assert await queue.put("Greet")


async def test_a_server_that_became_a_replica_is_left_for_the_one_that_took_over(
    own_server: OwnServer, redis_url: str, client: Client
) -> None:
    """As in a fail-over: the address leads to another server, and the old one goes on to answer."""
    async with Proxy(own_server.url) as proxy, Client(proxy.url, namespace=client.namespace) as away:
        await away.queue("mail").put("Greet", jid="a")
        async with Client(own_server.url) as old:
            await old.redis.replicaof("127.0.0.1", 1)
        with pytest.raises(exceptions.ReadOnlyError):
            await away.queue("mail").put("Greet", jid="b")
        proxy.upstream = redis_url
        await away.queue("mail").put("Greet", jid="b")
    assert await client.queue("mail").jobs("waiting") == ["b"]


@pytest.mark.parametrize("url", ["http://127.0.0.1", "nonsense", "redis://127.0.0.1:port"])
async def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        async with Client(url):
            pass


async def test_a_database_that_is_not_there_is_told(own_server: OwnServer) -> None:
    async with Client(f"{own_server.url}/99") as client:
        with pytest.raises(exceptions.ResponseError, match="DB index is out of range"):
            await client.queue("mail").put("Greet")


async def test_a_wrong_password_is_told_at_once(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        await client.redis.config_set("requirepass", "secret")
    async with Client(own_server.url) as client:
        with pytest.raises(exceptions.AuthenticationError):
            await client.queue("mail").put("Greet")
    async with Client(own_server.url.replace("redis://", "redis://:wrong@")) as client:
        with pytest.raises(exceptions.AuthenticationError):
            await client.queue("mail").put("Greet")
    async with Client(own_server.url.replace("redis://", "redis://:secret@")) as client:
        assert await client.queue("mail").put("Greet")
        assert client.where == {"url": own_server.url}


async def test_a_mistake_in_a_script_names_the_file_and_line_that_it_is_in(client: Client) -> None:
    await client.redis.set(f"{client.namespace}:j:a", "no hash")
    with pytest.raises(exceptions.ResponseError, match=r"^lib/\w+\.lua:\d+: WRONGTYPE"):
        await client.jobs.get("a")
    with pytest.raises(exceptions.ResponseError, match=r"^lib/\w+\.lua:\d+: WRONGTYPE"):
        await client.queue("mail").put("Greet", jid="a")


async def test_what_is_no_redis_is_told(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Client(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        with pytest.raises(exceptions.RedisError):
            await client.queue("mail").length()


# A worker over such a line


@pytest.fixture
def lines() -> Any:
    lines: list[dict[str, Any]] = []

    def keep(logger: object, method: str, line: Any) -> Any:
        lines.append(dict(line))
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    yield lines
    structlog.reset_defaults()


@spoils
async def test_a_worker_runs_each_job_once_whatever_the_line_does(
    client: Client, spoiled: Client, proxy: Proxy, spoil: Spoil, until: Until, lines: list[dict[str, Any]]
) -> None:
    ran: list[str] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.jid)
        if len(ran) % 3 == 0:
            spoil(proxy)

    for number in range(12):
        await client.queue("mail").put(greet, jid=f"j{number}")
    async with Worker(spoiled, greet, settings=Settings(queues=("mail",), concurrency=2, poll=0.05)):
        await until(lambda: client.jobs.complete(count=100))
        await until(lambda: len([line for line in lines if line["event"] == "job.completed"]) == 12, 15)
    assert sorted(ran) == sorted(f"j{number}" for number in range(12))
    assert not [line for line in lines if line["event"] in ("job.lock_lost", "job.refused", "job.outcome_dropped")]


async def test_jobs_that_were_locked_by_a_pop_whose_reply_was_lost_in_an_outage_are_run_by_the_next(
    client: Client, spoiled: Client, proxy: Proxy, until: Until, lines: list[dict[str, Any]]
) -> None:
    ran: list[tuple[str, int, int]] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append((job.jid, job.fence, job.remaining))

    async with Worker(spoiled, greet, settings=Settings(queues=("mail",), poll=0.02)):
        await until(lambda: spoiled._doors and proxy.connections >= 2)
        proxy.drop = 6  # more than a call is repeated
        await client.queue("mail").put(greet, jid="a")
        await until(lambda: [line for line in lines if line["event"] == "worker.redis_lost"])
        await until(lambda: ran)
    assert ran == [("a", 1, 5)]


async def test_a_lock_lost_is_told_to_those_who_really_lost_it(client: Client) -> None:
    """By the fence: even a run of a worker of the very same name."""
    await client.queue("mail").put("Greet", jid="a")
    (first,) = await client.queue("mail").pop(worker="twin")
    await client.jobs.timeout("a")
    with pytest.raises(WrongState, match="the job is not running"):
        await first.heartbeat()
    (second,) = await client.queue("mail").pop(worker="twin")
    assert second.fence > first.fence
    for verb in (first.heartbeat, first.complete, first.retry, first.release):
        with pytest.raises(LockLost) as lost:
            await verb()
        assert lost.value.holder == "twin" and lost.value.jid == "a"
    with pytest.raises(LockLost):
        await first.fail("typo", "x")
    assert await second.complete() == "complete"
