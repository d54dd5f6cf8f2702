"""An idle worker that polls every 30 seconds runs at once what has become ready, and costs nothing
while nothing has."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from aioqless import Client, Job, NewJob, job
from tests.conftest import Until
from tests.worker import foreign
from tests.worker.conftest import Idle, Lines, Work

SOON = 5.0  # seconds; a poll is 30 away

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@job(klass="Note")
async def note(job: Job[Any]) -> None:
    ran.append(job.jid)


async def test_a_put_wakes_it(client: Client, work: Work, until: Until, idle: Idle) -> None:
    async with work(note) as worker:
        await idle(worker)
        began = time.monotonic()
        await client.queue("mail").put(note, jid="a")
        await until(lambda: ran == ["a"], SOON)
    assert time.monotonic() - began < 1


async def test_each_of_several_puts_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        for count in range(1, 6):
            await idle(worker)
            await client.queue("mail").put(note)
            await until(lambda: len(ran) == count, SOON)  # noqa: B023


async def test_many_puts_wake_it(client: Client, work: Work, until: Until, idle: Idle) -> None:
    async with work(note) as worker:
        await idle(worker)
        await client.queue("mail").put_many(NewJob(note) for _ in range(150))
        await until(lambda: len(ran) == 150, SOON)


async def test_a_put_into_any_of_its_queues_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note, queues=("mail", "billing")) as worker:
        await idle(worker)
        await client.queue("billing").put(note, jid="a")
        await until(lambda: ran == ["a"], SOON)


async def test_a_put_by_another_qless_client_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        await foreign.put(client.redis, client.namespace, "mail", "from-ruby", "Note")
        await until(lambda: ran == ["from-ruby"], SOON)


async def test_a_delayed_put_by_another_qless_client_wakes_it_in_time(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        await foreign.put(client.redis, client.namespace, "mail", "from-ruby", "Note", delay=0.3)
        await until(lambda: ran == ["from-ruby"], SOON)


async def test_a_job_that_comes_back_from_failure_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("mail").put(note, jid="a")
    (failing,) = await client.queue("mail").pop()
    await failing.fail("typo", "no such word")
    async with work(note) as worker:
        await idle(worker)
        assert await client.queue("mail").unfail("typo") == 1
        await until(lambda: ran == ["a"], SOON)


async def test_a_job_that_moves_here_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("elsewhere").put(note, jid="a")
    async with work(note) as worker:
        await idle(worker)
        await client.queue("mail").requeue(NewJob(note, jid="a"))
        await until(lambda: ran == ["a"], SOON)


async def test_a_job_that_another_worker_sends_here_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("elsewhere").put(note, jid="a")
    (running,) = await client.queue("elsewhere").pop()
    async with work(note) as worker:
        await idle(worker)
        await running.complete("mail")
        await until(lambda: ran == ["a"], SOON)


async def test_a_job_whose_dependency_completes_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("elsewhere").put(note, jid="first")
    await client.queue("mail").put(note, jid="second", depends=["first"])
    (first,) = await client.queue("elsewhere").pop()
    async with work(note) as worker:
        await idle(worker)
        await first.complete()
        await until(lambda: ran == ["second"], SOON)


async def test_a_job_that_need_not_wait_for_others_any_more_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("elsewhere").put(note, jid="first")
    await client.queue("mail").put(note, jid="second", depends=["first"])
    second = await client.jobs.get("second")
    assert second
    async with work(note) as worker:
        await idle(worker)
        await second.undepend()
        await until(lambda: ran == ["second"], SOON)


@pytest.mark.parametrize("verb", ["retry", "release"])
async def test_a_job_that_another_worker_gives_back_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle, verb: str
) -> None:
    await client.queue("mail").put(note, jid="a")
    (running,) = await client.queue("mail").pop()
    async with work(note) as worker:
        await idle(worker)
        await getattr(running, verb)()
        await until(lambda: ran == ["a"], SOON)


async def test_a_job_that_is_taken_from_another_worker_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("mail").put(note, jid="a")
    (running,) = await client.queue("mail").pop()
    async with work(note) as worker:
        await idle(worker)
        await running.timeout()
        await until(lambda: ran == ["a"], SOON)


async def test_a_queue_that_goes_on_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("mail").pause()
    await client.queue("mail").put(note, jid="a")
    async with work(note) as worker:
        await idle(worker)
        assert ran == []
        await client.queue("mail").unpause()
        await until(lambda: ran == ["a"], SOON)


async def test_a_delayed_job_wakes_it_at_its_time(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.queue("mail").put(note, jid="before", delay=0.3)
    async with work(note) as worker:
        await idle(worker)
        await client.queue("mail").put(note, jid="sooner", delay=0.1)
        began = time.monotonic()
        await until(lambda: ran == ["sooner", "before"], SOON)
    assert time.monotonic() - began > 0.05


async def test_a_retry_of_its_own_with_a_delay_wakes_it_at_its_time(
    client: Client, work: Work, until: Until
) -> None:
    from aioqless import Retry

    times = []

    @job(klass="Again")
    async def again(job: Job[Any]) -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            raise Retry(0.2)

    await client.queue("mail").put(again)
    async with work(again):
        await until(lambda: len(times) == 2, SOON)
    assert 0.2 <= times[1] - times[0] < 1


async def test_a_recurring_job_wakes_it_at_each_of_its_times(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        every = await client.queue("mail").recur(note, every=1, jid="tick")
        await until(lambda: ran == ["tick-1", "tick-2"], SOON)
        await every.cancel()


async def test_a_lock_of_a_dead_worker_wakes_it_when_it_lapses(
    client: Client, work: Work, until: Until
) -> None:
    await client.config.set("heartbeat", 0.2)
    await client.config.set("grace-period", 0.2)
    await client.queue("mail").put(note, jid="a")
    assert await client.queue("mail").pop(worker="dead")
    async with work(note):
        await until(lambda: ran == ["a"], SOON)


async def test_what_was_put_before_it_listened_is_found(
    client: Client, work: Work, until: Until
) -> None:
    for jid in ("a", "b", "c"):
        await client.queue("mail").put(note, jid=jid)
        async with work(note):
            await until(lambda: jid in ran, SOON)  # noqa: B023


async def test_a_subscription_that_breaks_is_made_again(
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
            '{"event":"put"}',
            '{"event":"put","queue":7}',
            b'"put"\xff',
        ),
        *('{"event":"put","queue":["mail"]}', "[" * 100_000 + '"put"'),
    ],
    ids=lambda payload: str(payload[:40]),
)
async def test_whatever_is_published_it_goes_on(
    client: Client, work: Work, until: Until, idle: Idle, payload: str | bytes
) -> None:
    async with work(note) as worker:
        await idle(worker)
        for channel in ("log", "x:ready", f"w:{worker.name}"):
            await client.redis.publish(f"{client.namespace}:{channel}", payload)
        await client.queue("mail").put(note, jid="a")
        await until(lambda: ran == ["a"], SOON)
        assert worker.healthy


async def test_a_slot_that_another_worker_frees_in_a_limited_queue_wakes_it(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.config.set("mail-max-concurrency", 1)
    for jid in "abc":
        await client.queue("mail").put(note, jid=jid)
    (running,) = await client.queue("mail").pop(worker="another")
    async with work(note) as worker:
        await idle(worker)
        assert ran == []
        await running.complete()
        await until(lambda: ran == ["b", "c"], SOON)  # and its own free one as well


async def test_after_a_pop_that_brought_something_it_pops_again_at_once(
    client: Client, work: Work, until: Until
) -> None:
    await client.queue("mail").put_many(
        NewJob(note) for _ in range(95)
    )  # three pops of a third of the slots
    async with work(note, concurrency=90) as worker:
        worker._poller.wake = lambda queue=None: None  # type: ignore[method-assign]
        await until(lambda: len(ran) == 95, SOON)


# What costs nothing


async def pops(client: Client, seconds: float) -> int:
    """How many scripts Redis ran for the worker meanwhile."""

    async def calls() -> int:
        stats = await client.redis.info("commandstats")
        return int(stats["cmdstat_evalsha"]["calls"])

    before = await calls()
    await asyncio.sleep(seconds)  # of nothing happening: there is no event to wait for
    return await calls() - before


async def test_an_idle_worker_asks_for_nothing(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        assert await pops(client, 0.3) <= 1


async def test_a_paused_queue_with_work_that_is_due_does_not_keep_it_busy(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.config.set("heartbeat", 0.01)
    await client.queue("mail").put(note)
    await client.queue("mail").pop(worker="dead")
    await client.queue("mail").put(note, delay=0.01)
    await client.queue("mail").recur(note, every=0.01)
    await client.queue("mail").pause()
    async with work(note) as worker:
        await idle(worker)
        assert await pops(client, 0.3) <= 2
    assert ran == []


async def test_a_queue_at_its_limit_does_not_keep_it_busy(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    await client.config.set("mail-max-concurrency", 1)
    for _ in range(3):
        await client.queue("mail").put(note)
    assert len(await client.queue("mail").pop(worker="another")) == 1
    await client.queue("mail").put(note, delay=0.01)
    async with work(note) as worker:
        await idle(worker)
        assert await pops(client, 0.3) <= 2
    assert ran == []


async def test_puts_into_queues_of_others_do_not_make_it_pop(
    client: Client, work: Work, until: Until, idle: Idle
) -> None:
    async with work(note) as worker:
        await idle(worker)
        for _ in range(5):
            await foreign.put(client.redis, client.namespace, "elsewhere", "a", "Note")
        assert await pops(client, 0.2) <= 1


async def test_what_comes_while_slots_are_free_begins_beside_long_jobs_of_a_full_pop(
    client: Client, work: Work, until: Until
) -> None:
    """Thirty slots are filled by tens: the third pop brings five, and the room that it left is
    asked for again."""
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
