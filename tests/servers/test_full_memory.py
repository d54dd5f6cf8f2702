"""A Redis without free memory: puts are refused, existing jobs run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioqless import (
    AioqlessError,
    Client,
    Fail,
    Job,
    NewJob,
    Next,
    QueueFull,
    Retry,
    Settings,
    Worker,
    job,
)
from aioqless.errors import PutManyError
from aioqless.worker.parts.memory_checks import check_eviction
from tests.conftest import Until
from tests.server import OwnServer
from tests.worker.conftest import Lines, lines

__all__ = ["lines"]

PADDING = "x" * 2_000


async def fill(client: Client, megabytes: int) -> int:
    """Put jobs of each kind until Redis is out of memory; returns their number."""
    used = (await client.redis.info("memory"))["used_memory"]
    await client.redis.config_set("maxmemory", used + megabytes * 1_000_000)
    kinds = ("Through", "Onward", "Again", "Wrong", "Long")
    count = 0
    with pytest.raises((QueueFull, PutManyError)):
        while True:
            await client.queue("mail").put_many(
                NewJob(kinds[(count + n) % 5], {"padding": PADDING}, retries=1) for n in range(100)
            )
            count += 100
    with pytest.raises(QueueFull):
        while True:
            await client.queue("mail").put("Through")
            count += 1
    return count


@pytest.mark.long
async def test_worker_drains_a_redis_at_its_memory_limit(
    own_server: OwnServer, lines: Lines, until: Until
) -> None:
    async with Client(own_server.url) as client:
        refused = 0

        @job(klass="Through")
        async def through(job: Job[Any]) -> None: ...

        @job(klass="Onward")
        async def onward(job: Job[Any]) -> Next | None:
            return Next("post") if job.queue == "mail" else None

        @job(klass="Again")
        async def again(job: Job[Any]) -> None:
            if job.remaining:
                raise Retry(delay=0.01)

        @job(klass="Wrong")
        async def wrong(job: Job[Any]) -> None:
            raise Fail("as ever", group="wrong")

        @job(klass="Long")
        async def long(job: Job[Any]) -> None:
            nonlocal refused
            await job.heartbeat()
            try:
                await client.queue("mail").put("Through", {"padding": PADDING})
            except QueueFull:
                refused += 1

        total = await fill(client, 10)
        assert total > 1_500
        settings = Settings(queues=("mail", "post"), concurrency=50, burst=True)
        await Worker(client, through, onward, again, wrong, long, settings=settings).run()
        counts = {queue.name: queue for queue in await client.queues()}
        assert all(
            not getattr(counts[name], state)
            for name in ("mail", "post")
            for state in ("waiting", "running", "scheduled", "stalled")
        )
        assert refused > 0 and not lines.of("job.refused") and not lines.of("worker.crashed")
        assert set(await client.jobs.failed_counts()) == {"wrong"}
        assert await client.check() == []

        # Completed jobs use memory too, until they are pruned as others complete.
        await client.config.set("jobs-history-count", 0)
        failed = (await client.jobs.failed_counts())["wrong"]
        while await client.queue("mail").unfail("wrong", 1_000):
            pass
        worked = await client.queue("mail").pop(1_000)
        assert 0 < len(worked) <= failed
        await asyncio.gather(*(each.complete() for each in worked))
        assert await client.queue("mail").put("Through", {"padding": PADDING})


async def test_put_can_wait_for_memory(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        await client.redis.config_set("maxmemory", 1)
        with pytest.raises(QueueFull, match="maxmemory"):
            await client.queue("mail").put_many([NewJob("A"), NewJob("B")], wait=0.05)
        waiting = asyncio.gather(
            client.queue("mail").put("A", jid="a", wait=30),
            client.queue("mail").put_many([NewJob("B", jid="b")], wait=30),
        )
        await asyncio.sleep(0)
        await client.redis.config_set("maxmemory", 0)
        assert await waiting == ["a", ["b"]]


# Redis with an eviction policy


async def test_redis_with_an_eviction_policy_is_refused_at_start(
    own_server: OwnServer, lines: Lines
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    async with Client(own_server.url) as client:
        await client.redis.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(
            AioqlessError,
            match=r"Redis has maxmemory-policy allkeys-lru: .* it deletes keys, and with them jobs",
        ):
            await Worker(client, greet).run()
        assert not lines.of("worker.eviction_allowed")
        await Worker(client, greet, settings=Settings(allow_eviction=True, burst=True)).run()
        assert lines.of("worker.eviction_allowed", policy="allkeys-lru", level="warning")


async def test_worker_without_permission_to_read_the_policy_logs_that_it_is_unknown(
    own_server: OwnServer, lines: Lines
) -> None:
    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None: ...

    async with Client(own_server.url) as client:
        await client.redis.execute_command(
            "ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all", "-info"
        )
    async with Client(own_server.url.replace("redis://", "redis://ann:secret@")) as client:
        worker = Worker(client, greet)
        await check_eviction(worker._consumer._context)
    assert lines.of("worker.eviction_unknown", level="warning")


# A queue at its maximum length


async def test_put_into_a_full_queue_waits_for_a_completion(client: Client, until: Until) -> None:
    ran: list[str] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.jid)

    mail = client.queue("mail")
    await client.config.set("mail-max-length", 10)
    jids = [f"j{number}" for number in range(100)]
    putting = asyncio.gather(*(mail.put("Greet", jid=jid, wait=30) for jid in jids[:50]))
    many = asyncio.create_task(
        mail.put_many([NewJob("Greet", jid=jid) for jid in jids[50:]], wait=30)
    )

    async def is_full() -> bool:
        return await mail.length() == 10

    await until(is_full)
    assert not putting.done()
    async with Worker(client, greet, settings=Settings(queues=("mail",), poll=0.05)):
        assert await putting == jids[:50] and await many == jids[50:]
        await until(lambda: len(ran) == 100)
    assert sorted(ran) == sorted(jids)


async def test_put_whose_wait_timed_out_is_refused_and_nothing_was_put(client: Client) -> None:
    mail = client.queue("mail")
    await client.config.set("mail-max-length", 1)
    await mail.put("Greet")
    with pytest.raises(
        QueueFull, match=r"put: the queue has reached its maximum length \(.*queue 'mail'"
    ) as refused:
        await mail.put("Greet", jid="late", wait=0.1)
    assert refused.value.detail["limit"] == 1
    with pytest.raises(ExceptionGroup) as group:
        await mail.put_many([NewJob("Greet", jid="late")])
    assert [type(each) for each in group.value.exceptions] == [QueueFull]
    assert await client.jobs.get("late") is None and await mail.length() == 1


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf")])
async def test_invalid_wait_is_refused(client: Client, wait: float) -> None:
    with pytest.raises(ValueError, match="wait"):
        await client.queue("mail").put("Greet", wait=wait)
