"""Locks: renewed while a handler runs; a lost lock stops the handler."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from aioqless import Client, Job, job
from tests.client.proxy import Proxy
from tests.conftest import Until
from tests.worker.conftest import Idle, Lines, Stay, Work

SOON = 15.0  # seconds; the next heartbeat is 20 away


async def expire_lock(client: Client, jid: str) -> None:
    """Let a job's lock expire, as if it had not been renewed."""
    key = f"{client.namespace}:q:mail-locks"
    await client.redis.zadd(key, {jid: time.time() - 1})


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "held"])
async def test_job_of_a_late_reply_runs_only_if_its_lock_is_still_held(
    client: Client,
    redis_url: str,
    work: Work,
    idle: Idle,
    until: Until,
    stay: Stay,
    lines: Lines,
    taken: bool,
) -> None:
    """The reply of the pop arrives after its lock of one second has expired.

    In the meantime another worker may take the job.
    """
    await client.config.set("heartbeat", 1)
    await client.config.set("grace-period", 0)
    stay.end.set()
    async with (
        Proxy(redis_url) as proxy,
        Client(proxy.url, namespace=client.namespace) as slow,
        work(stay.handler, using=slow) as worker,
    ):
        await idle(worker)
        worker.pause()
        await until(
            lambda: lines.of("worker.paused")
        )  # so that the reply of the next pop is delayed
        proxy.delay, proxy.seconds = 1, 60 if taken else 1.5
        jid = await client.queue("mail").put(stay.handler)
        worker.resume()

        async def handed_out() -> bool:
            return bool((await client.queue("mail").counts()).running)

        await until(handed_out)
        if taken:
            await client.config.set(
                "heartbeat", 60
            )  # the lock of the other worker, which lasts for the rest of the test
            (held,) = await until(lambda: client.queue("mail").pop(worker="rival"))
            proxy.go_on.set()
            await until(lambda: lines.of("job.stale_pop_dropped", jid=jid))
            assert not stay.began and not worker.running
            assert await held.complete() == "complete"
        else:
            await until(lambda: lines.of("job.completed", jid=jid))
            assert len(stay.began) == 1


# Renewed locks


async def test_worker_that_was_idle_renews_a_lock_shorter_than_its_longest_pause(
    client: Client,
    work: Work,
    until: Until,
    idle: Idle,
    stay: Stay,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.worker.lock_renewer.LONGEST_PAUSE", 60)
    await client.config.set("heartbeat", 2.4)
    await client.config.set("grace-period", 0)
    async with work(stay.handler) as worker:
        await idle(worker)
        for run in (1, 2):
            await client.queue("mail").put(stay.handler)
            await until(lambda: len(stay.began) == run)  # noqa: B023
            expires = stay.began[-1].expires
            await until(lambda: stay.began[-1].expires > expires)  # noqa: B023
            assert await client.queue("mail").pop(worker="rival") == []
        stay.end.set()
        await until(lambda: len(lines.of("job.completed")) == 2)
    assert [job.fence for job in stay.began] == [1, 2]


async def test_all_locks_are_renewed_in_one_call(
    client: Client, work: Work, until: Until, stay: Stay
) -> None:
    await client.config.set("heartbeat", 0.3)
    await client.config.set("grace-period", 60)
    for _ in range(30):
        await client.queue("mail").put(stay.handler)

    async def calls() -> int:
        return int((await client.redis.info("commandstats"))["cmdstat_evalsha"]["calls"])

    async with work(stay.handler, concurrency=30):
        await until(lambda: len(stay.began) == 30)
        before = await calls()
        expires = stay.began[0].expires
        await until(lambda: all(job.expires > expires + 0.3 for job in stay.began))
        assert await calls() - before < 30, "one call for each job would be three times as many"
        stay.end.set()


async def test_locks_of_different_durations_are_renewed_accordingly(
    client: Client, work: Work, until: Until, stay: Stay
) -> None:
    """The lock duration is changed while the job runs.

    From then on the lock is renewed neither too late nor too often.
    """
    await client.config.set("heartbeat", 3)
    await client.queue("mail").put(stay.handler)
    async with work(stay.handler):
        await until(lambda: stay.began)
        before = stay.began[0].expires
        await client.config.set("heartbeat", 0.06)
        await until(lambda: stay.began[0].expires < before)
        await client.config.set("heartbeat", 60)
        await until(lambda: stay.began[0].expires > before + 50)

        async def is_left_alone() -> bool:
            renewed = stay.began[0].expires
            await asyncio.sleep(0.3)  # nothing may happen in this time
            return stay.began[0].expires == renewed

        await until(is_left_alone)  # a renewal of the short lock may have been on its way
        stay.end.set()


async def test_lock_that_expired_is_renewed_within_the_grace_period(
    client: Client, work: Work, until: Until, idle: Idle, stay: Stay, lines: Lines
) -> None:
    jid = await client.queue("mail").put(stay.handler, retries=0)
    async with work(stay.handler) as worker:
        await until(lambda: stay.began)
        await idle(worker)
        lock = await client.redis.zscore(f"{client.namespace}:q:mail-locks", jid)
        await expire_lock(client, jid)
        assert (
            await client.queue("mail").pop(worker="rival") == []
        )  # the pop notifies the holder, which has 10 s from now

        async def has_lock() -> bool:
            return await client.redis.zscore(f"{client.namespace}:q:mail-locks", jid) >= lock

        await until(has_lock)
        assert await client.queue("mail").pop(worker="rival") == []
        stay.end.set()
        await until(lambda: lines.of("job.completed", jid=jid))
    done = await client.jobs.get(jid)
    assert (
        done
        and len(stay.began) == 1
        and [event["what"] for event in done.events] == ["put", "popped", "timed-out", "done"]
    )


# Lost locks


async def test_handler_that_returns_after_its_lock_was_lost_stores_nothing(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    """It is not notified: only the fence protects the job from its outcome."""

    @job(klass="Slow")
    async def slow(job: Job[Any]) -> None:
        await client.redis.zadd(f"{client.namespace}:q:mail-locks", {job.jid: 1})
        await client.redis.hset(f"{client.namespace}:j:{job.jid}", "worker", "rival")

    jid = await client.queue("mail").put(slow)
    async with work(slow):
        await until(lambda: lines.of("job.lock_lost", jid=jid))
        held = await client.jobs.get(jid)
        assert held and held.worker == "rival" and held.state == "running"


async def test_job_popped_again_by_the_worker_that_lost_it_waits_for_its_former_run(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    """A thread can't be stopped.

    Until it returns, its slot is in use and the job does not run again.
    """
    runs: list[str] = []
    ends = [threading.Event(), threading.Event()]
    for end in ends[1:]:
        end.set()

    @job(klass="Block")
    def block(job: Job[Any]) -> None:
        runs.append("began")
        ends[runs.count("began") - 1].wait(30)
        runs.append("ended")

    jid = await client.queue("mail").put(block)
    async with work(block, concurrency=2) as worker:
        await until(lambda: runs)
        await client.jobs.unlock(jid)

        async def is_held_again() -> bool:
            held = await client.jobs.get(jid)
            return bool(held and held.state == "running" and held.fence == 2)

        await until(is_held_again)
        assert runs == ["began"] and worker.running == [jid]
        ends[0].set()
        await until(lambda: lines.of("job.completed", jid=jid))
    assert runs == ["began", "ended", "began", "ended"]


async def test_job_canceled_while_the_subscription_was_down_is_stopped_after_it_reconnects(
    client: Client,
    work: Work,
    until: Until,
    idle: Idle,
    stay: Stay,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jid = await client.queue("mail").put(stay.handler)
    async with work(stay.handler) as worker:
        await until(lambda: stay.began)
        await idle(worker)
        monkeypatch.setattr("aioqless.worker.parts.listener.PAUSE", 0.2)
        await client.redis.client_kill_filter(_type="pubsub")
        await until(lambda: len(lines.of("listener.failed")) == 2)
        await client.jobs.cancel(jid)
        await until(lambda: stay.stopped == [jid], SOON)
