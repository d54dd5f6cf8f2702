"""Notifications: an idle worker that polls every 90 s starts jobs as soon as they are ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from aioqless import Client, Job, NewJob, job
from aioqless.worker.parts import listener
from tests.conftest import Until
from tests.worker import foreign
from tests.worker.conftest import Idle, Lines, Work

SOON = 60.0  # seconds; a poll is 90 away

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@job(klass="Note")
async def note(job: Job[Any]) -> None:
    ran.append(job.jid)


@contextmanager
def count_pops(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Yield a list with an item for each pop of this client's workers."""
    pops: list[object] = []
    pop_many = client.internals.store.pop_many

    def counted(**arguments: Any) -> Any:
        pops.append(arguments)
        return pop_many(**arguments)

    with monkeypatch.context() as patched:
        patched.setattr(client.internals.store, "pop_many", counted)
        yield pops


async def test_worker_that_gets_jobs_one_by_one_neither_pops_twice_nor_subscribes_for_each(
    client: Client, work: Work, until: Until, idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "QUIET", 60.0)  # none of the jobs comes after such a pause
    log = f"{client.namespace}:log"

    async def put_one_by_one(jobs: int) -> None:
        for _ in range(jobs):
            before = len(ran)
            await client.queue("mail").put(note)
            await until(lambda: len(ran) > before and not worker.running, SOON)  # noqa: B023

    async def ignores_the_log() -> bool:
        return await client.redis.pubsub_numsub(log) == [(log.encode(), 0)]

    async with work(note) as worker:
        await idle(worker)
        await put_one_by_one(2)  # the second finds it busy, and it leaves the log
        await until(ignores_the_log, SOON)
        await until(lambda: worker.idle)
        with count_pops(client, monkeypatch) as pops:
            await put_one_by_one(5)
        assert await ignores_the_log()
    assert len(pops) == 5


async def test_log_wakes_the_worker_for_a_put_of_another_qless_client_only(
    client: Client, work: Work, until: Until, idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "QUIET", 0.0)  # it listens to the log all the time
    mail = client.queue("mail")
    await mail.pause()
    await mail.put(note, jid="a")  # later ones are announced in the log alone
    async with work(note) as worker:
        await idle(worker)
        with count_pops(client, monkeypatch) as pops:
            await mail.put(note, jid="b")
            await until(lambda: no_calls(client))
            assert pops == []
            await foreign.put(client.redis, client.namespace, "mail", "from-ruby", "Note")
            await until(lambda: len(pops) == 1, SOON)


async def test_put_by_another_qless_client_soon_after_a_job_wakes_the_worker(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        await client.queue("mail").put(note, jid="a")
        await until(lambda: ran == ["a"] and worker.idle, SOON)
        await foreign.put(client.redis, client.namespace, "mail", "from-ruby", "Note")
        await until(lambda: ran == ["a", "from-ruby"], SOON)


async def test_delayed_job_starts_on_time(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        await client.queue("mail").put(note, jid="before", delay=1.5)
        await client.queue("mail").put(note, jid="sooner", delay=0.1)
        began = time.monotonic()
        await until(lambda: ran == ["sooner", "before"], SOON)
    assert time.monotonic() - began > 0.05


async def test_expired_lock_of_a_dead_worker_wakes_the_worker(
    client: Client, work: Work, until: Until
) -> None:
    await client.config.set("heartbeat", 0.2)
    await client.config.set("grace-period", 0.2)
    await client.queue("mail").put(note, jid="a")
    assert await client.queue("mail").pop(worker="dead")
    async with work(note):
        await until(lambda: ran == ["a"], SOON)


async def test_broken_subscription_is_renewed(
    client: Client, work: Work, until: Until, idle: Idle, lines: Lines
) -> None:
    async with work(note) as worker:
        await idle(worker)
        await client.redis.client_kill_filter(_type="pubsub")
        await until(lambda: lines.of("listener.failed"))
        await idle(worker)
        await client.queue("mail").put(note, jid="a")
        await until(lambda: ran == ["a"], SOON)


@pytest.mark.parametrize(
    "payload",
    [
        *(
            "",
            "put",
            '{"put"}',
            '"put"',
            '["put"]',
            '{"jid":"a","event":"put"}',
            '{"jid":"a","event":"put","queue":7}',
            b'"put"\xff',
        ),
        *('{"jid":"a","event":"put","queue":["mail"]}', "[" * 100_000 + '"put"'),
    ],
    ids=lambda payload: str(payload[:40]),
)
async def test_malformed_messages_do_not_stop_the_worker(
    client: Client, work: Work, until: Until, idle: Idle, payload: str | bytes
) -> None:
    async with work(note) as worker:
        await idle(worker)
        for channel in ("log", "x:ready", f"w:{worker.name}"):
            await client.redis.publish(f"{client.namespace}:{channel}", payload)
        await client.queue("mail").put(note, jid="a")
        await until(lambda: ran == ["a"], SOON)
        assert worker.healthy


# Idle workers send nothing, or little

_UNANNOUNCED = """
redis.call('HSET', ns .. ':j:' .. jid, 'jid', jid, 'klass', 'Note', 'data', '{}', 'priority', 0,
  'tags', '[]', 'state', 'waiting', 'worker', '', 'expires', 0, 'queue', 'mail', 'retries', 5,
  'remaining', 5, 'time', 1)
redis.call('ZADD', ns .. ':' .. key, score, jid)
"""


async def no_calls(client: Client) -> bool:
    """Return whether Redis runs no script for a while: `await until(lambda: no_calls(client))`."""

    async def calls() -> int:
        stats = await client.redis.info("commandstats")
        return int(stats["cmdstat_evalsha"]["calls"])

    before = await calls()
    await asyncio.sleep(0.3)  # of nothing happening: there is no event to wait for
    return await calls() == before


async def test_idle_worker_pops_only_when_a_look_says_that_it_may_bring_something(
    client: Client, work: Work, until: Until, idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    store = client.internals.store

    def count(name: str, send: Callable[..., Any], **given: Any) -> Any:
        calls.append(name)
        return send(**given)

    for name in ("pop_many", "ready"):
        monkeypatch.setattr(store, name, partial(count, name, getattr(store, name)))
    async with work(note, poll=0.05) as worker:
        await idle(worker)
        calls.clear()
        await until(lambda: len(calls) > 5, SOON)
        assert set(calls) == {"ready"}
        put = "local ns, jid, key, score = unpack(ARGV) " + _UNANNOUNCED
        now = await store.now()
        keys = {"waiting": ("q:mail-work", -now / 1e10), "due": ("q:mail-scheduled", now + 0.2)}
        for jid, (key, score) in keys.items():
            await client.redis.eval(put, 0, client.namespace, jid, key, score)
            await until(lambda: ran[-1:] == [jid], SOON)  # noqa: B023


async def test_paused_queue_with_due_jobs_does_not_keep_the_worker_busy(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.config.set("heartbeat", 0.01)
    await client.queue("mail").put(note)
    await client.queue("mail").pop(worker="dead")
    await client.queue("mail").put(note, delay=0.01)
    await client.queue("mail").recur(note, every=0.01, jid="r")
    await client.queue("mail").pause()
    async with work(note) as worker:
        await idle(worker)
        await until(lambda: no_calls(client))
    assert ran == []


async def test_puts_into_other_queues_do_not_wake_the_worker(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)

        async def wakes_nobody() -> bool:
            for _ in range(5):
                await foreign.put(client.redis, client.namespace, "elsewhere", "a", "Note")
            return await no_calls(client)

        await until(wakes_nobody)


async def test_new_jobs_use_free_slots_beside_long_jobs(
    client: Client, work: Work, until: Until
) -> None:
    """Thirty slots are filled by tens.

    The third pop gets five jobs; the slots that it left free are requested again.
    """
    go = asyncio.Event()

    @job(klass="Long")
    async def long(job: Job[Any]) -> None:
        ran.append(job.jid)
        await go.wait()

    await client.queue("mail").put_many(NewJob(long) for _ in range(25))
    async with work(long, concurrency=30):
        try:
            await until(lambda: len(ran) == 25, SOON)
            await client.queue("mail").put(long, jid="late")
            await until(lambda: "late" in ran, SOON)
        finally:
            go.set()
