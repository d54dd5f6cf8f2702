"""What workers have run, as `client.metrics` returns it."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from aioqless import Client, Fail, Job, Next, Retry, Settings, Worker, job
from aioqless.contrib.metrics import KlassMetrics
from aioqless.errors import InvalidArgument, NameTaken
from aioqless.testing import Clock
from tests.reported_runs import report_runs, run_values

HOUR, DAY = 3600, 86400
START = 1_800_000_000.0  # the beginning of an hour


@job(klass="Send", queue="mail")
async def send(job: Job, how: str = "well", seconds: float = 0.05) -> object:
    await asyncio.sleep(seconds)
    match how:
        case "badly":
            raise Fail("it is broken")
        case "again" if job.remaining == job.retries:
            raise Retry("not yet", delay=0)
        case "on" if job.queue == "mail":
            return Next("sent")
    return None


@job(klass="Log", queue="sent")
def log(job: Job) -> None: ...


async def run_all(client: Client, **settings: object) -> None:
    given = {"queues": ["mail", "sent"], "unknown_klass_timeout": 0, **settings}
    await Worker(client, [send, log], settings=Settings(burst=True, **given)).run()  # type: ignore[arg-type]


async def find(client: Client, klass: str) -> KlassMetrics:
    (found,) = await client.metrics.klasses(HOUR, klass=klass)
    return found


async def report(client: Client, now: float, *klasses: str, runs: int = 1, **more: Any) -> None:
    await report_runs(client, now, [("mail", klass, run_values(runs)) for klass in klasses], **more)


async def test_runs_are_counted_by_klass_and_queue_and_by_how_they_end(client: Client) -> None:
    for how in ("well", "well", "badly", "again", "on"):
        await client.put(send.data(how=how))
    await client.put("Log", {}, queue="sent")
    await run_all(client)
    found = {
        (each.klass, each.queue): each for each in await client.metrics.klasses(timedelta(hours=1))
    }
    mail = found["Send", "mail"].total
    assert found.keys() == {("Send", "mail"), ("Send", "sent"), ("Log", "sent")}
    assert (mail.runs, mail.failures, mail.retries) == (6, 1, 1)
    assert mail.run.count == 6 and 0.04 < (mail.run.p50 or 0) < 10
    assert mail.wait.count == 6 and (mail.wait.p95 or 0) > 0
    assert sum(each.runs for each in found["Send", "mail"].periods) == 6
    listed = await client.metrics.klasses(queue="sent")
    assert {each.klass: each.total.runs for each in listed} == {"Send": 1, "Log": 1}


async def test_figures_agree_with_those_of_the_archive(client: Client) -> None:
    await client.config.set("archive", "on")
    await client.put_many([send.data(seconds=1 + number / 20) for number in range(20)])
    await run_all(client, concurrency=10)
    entries: Any = await client.redis.xrange(f"{client.namespace}:x:archive")
    runs = sorted(float(entry[b"ended"]) - float(entry[b"popped"]) for _, entry in entries)
    waits = sorted(float(entry[b"popped"]) - float(entry[b"put"]) for _, entry in entries)
    total = (await find(client, "Send")).total
    assert total.runs == len(runs) == 20
    # Each includes a call of Redis that the other doesn't: the archive that of the pop, the worker
    # that of the completion. Alone they differ by less than a percent, beside other tests by more.
    assert total.wait_seconds == pytest.approx(sum(waits), rel=0.1)
    least = sum(1 + number / 20 for number in range(20))
    assert least <= total.run_seconds <= 1.1 * sum(runs)
    for share, found, exact in (
        *((0.5, total.run.p50, runs), (0.95, total.run.p95, runs)),
        (0.95, total.wait.p95, waits),
    ):  # within a bucket, whose end is twice its begin at most
        assert exact[int(share * 20)] / 2 < (found or 0) < exact[int(share * 20)] * 2


async def test_counts_that_are_sent_again_add_nothing(client: Client) -> None:
    now = time.time()
    for number in (7, 7, 8, 7):
        await report(client, now, "Send", number=number, runs=3)
    assert (await find(client, "Send")).total.runs == 6


async def test_counts_of_a_process_are_added_once_also_after_it_was_gone(client: Client) -> None:
    now = time.time() - 100
    await report(client, now, "Send", number=1)
    for at in range(0, 30, 5):  # another worker finds that it is gone
        await report_runs(client, now + at, worker="bob", id="bob")
    await report(client, now + 40, "Send", number=1)
    assert (await find(client, "Send")).total.runs == 1


async def test_counts_of_the_next_process_of_a_name_are_added(client: Client) -> None:
    now = time.time() - 100
    await report(client, now, "Send", number=1, id="one")
    with pytest.raises(NameTaken):
        await report(client, now, "Send", number=2, id="other")
    await client.workers.deregister("ann")
    await report(client, now, "Send", number=1, id="other")
    assert (await find(client, "Send")).total.runs == 2


@pytest.mark.parametrize(
    "row",
    [
        *("7", "{}", '["mail"]', '["mail","Send"]', '["mail","Send",[1,2]]', "{"),
        *('["mail","Send",[0,0,1,1,1]]', '["mail","Send",[0,0,1,-1]]'),
        *('["mail","Send",[0,0,1,0.5]]', '[7,"Send",[0,0,1,1]]'),
    ],
)
async def test_malformed_counts_are_refused(client: Client, row: str) -> None:
    beat, counts = client.internals.store.beat, f'[["a","b",[0,0,1,1]],{row}]'
    with pytest.raises(InvalidArgument, match="counts"):
        await beat(worker="ann", process="{}", number=1, counts=counts)
    with pytest.raises(InvalidArgument, match="cannot be used without number"):
        await beat(worker="ann", process="{}", counts="[]")
    assert await client.redis.keys(f"{client.namespace}:*") == []


async def test_runs_after_a_clock_that_was_ahead_are_of_the_current_period(
    redis_url: str, namespace: str
) -> None:
    clock = Clock(START)
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        await report(client, START - 60, "Send")
        await report(client, START + DAY, "Send", runs=5)
        await report(client, START, "Send")
        await report(client, START - 60, "Send")
        clock.move(60)
        for step in (60, 600, 3600):
            (found,) = await client.metrics.klasses(2 * HOUR, step=step)
            assert found.total.runs == 3, step


async def test_periods_are_kept_for_as_long_as_their_length_says(
    redis_url: str, namespace: str
) -> None:
    clock = Clock(START)
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        for age in (29 * DAY, 2 * DAY, 7 * HOUR, 7 * HOUR - 10, 30):
            await report(client, START - age, "Send")
        for since, step, runs in (
            *((30 * DAY, 3600, 5), (3 * DAY, 600, 4), (8 * HOUR, 60, 3)),
            *((1 * HOUR, None, 1), (6 * HOUR, None, 1), (8 * HOUR, None, 3), (3 * DAY, None, 4)),
        ):
            (found,) = await client.metrics.klasses(since, step=step)
            assert found.total.runs == runs, (since, step)
        for since, step in ((9 * HOUR, 60), (4 * DAY, 600), (31 * DAY, None), (HOUR, 7)):
            with pytest.raises(ValueError, match="are kept for"):
                await client.metrics.klasses(since, step=step)


async def test_periods_beyond_those_kept_are_dropped(client: Client) -> None:
    now = time.time() // 60 * 60
    for minute in range(483):
        await report(client, now - (482 - minute) * 60, "Send")
    key = f"{client.namespace}:x:periods:60:4:mail:Send"
    assert await client.redis.llen(key) == 481
    assert 8 * HOUR < await client.redis.ttl(key) <= 8 * HOUR + 60


async def test_what_ran_around_a_mark_can_be_compared(redis_url: str, namespace: str) -> None:
    clock = Clock(START)
    async with Client(redis_url, namespace=namespace, clock=clock) as client:
        await report(client, START - 600, "Send", runs=2)
        clock.move(60)
        await client.metrics.mark("database moved")
        await report(client, START + 60, "Send", runs=3)
        (mark,) = await client.metrics.marks()
        (found,) = await client.metrics.klasses(HOUR)
        before, after = found.between(0, mark.at), found.between(mark.at, clock() + 1)
        assert (mark.text, mark.deploy, before.runs, after.runs) == ("database moved", False, 2, 3)
        assert await client.metrics.marks(since=0) == [mark]


async def test_more_than_1000_pairs_of_klass_and_queue_are_counted_as_others(
    client: Client,
) -> None:
    now = time.time() - HOUR
    for first in range(0, 1100, 100):
        await report(client, now + first, *[f"K{first + each}" for each in range(100)])
    await report(client, now + 2000, "K7", "K1077")
    found = {each.klass: each.total.runs for each in await client.metrics.klasses()}
    assert len(found) == 1001 and found["others"] == 101 and found["K7"] == 2
    # Those that have not run for 30 days make room.
    await report(client, now + 40 * DAY, "New")
    assert await client.redis.zrange(f"{client.namespace}:x:series", 0, -1) == [b"4:mail:New"]


async def test_first_worker_of_a_new_version_makes_a_mark(client: Client) -> None:
    now = time.time() - HOUR
    reports = [
        *((0, "a"), (10, "a"), (20, "b"), (25, "a"), (30, "b")),  # a rolling deploy
        *((200, "b"),),  # a restart of all workers
        *((400, "a"),),  # the former version is deployed again
        *((600, "b"), (800, "a"), (1000, "b"), (1200, "a")),  # two applications take turns
    ]
    for at, version in reports:  # each is the first beat of a worker
        await report(client, now + at, version=version, worker=f"{version} at {at}")
    marks = await client.metrics.marks()
    assert [(round(mark.at - now), mark.text) for mark in marks] == [
        (600, "b"),
        (400, "a"),
        (20, "b"),
        (0, "a"),
    ]
    assert all(mark.deploy for mark in marks)


async def test_version_counts_as_running_while_its_workers_send_beats(client: Client) -> None:
    now = time.time() - HOUR
    for at in range(0, 600, 5):
        await report(client, now + at, version="a")
        await report(client, now + at + 1, version="b", worker="bob")
    await report(client, now + 600, version="a", worker="new")
    assert [mark.text for mark in await client.metrics.marks()] == ["b", "a"]


async def test_memory_is_kept_by_minute_for_eight_hours(client: Client) -> None:
    now = time.time() // 60 * 60
    for minute in range(500):
        for second in (0, 30):
            await report(client, now - (499 - minute) * 60 + second, memory=minute, busy=1)
    history = await client.metrics.worker_history("ann")
    assert [each.memory for each in history] == list(range(20, 500))
    assert history[-1].start == now
    await report(client, now + 31, memory=7, id="1")
    await client.workers.deregister("ann")
    assert await client.metrics.worker_history("ann") == []


async def test_facts_that_another_version_does_not_report_have_defaults(client: Client) -> None:
    await client.internals.store.beat(worker="ann", process='{"id":"1"}')
    facts = await client.metrics.workers("ann", "unknown")
    assert [(name, each.host, each.slots) for name, each in facts.items()] == [("ann", "", 0)]


async def test_mark_that_is_not_utf8_is_read_like_any_other(client: Client) -> None:
    await client.metrics.mark("caf\udce9")
    assert [mark.text for mark in await client.metrics.marks()] == ["caf?"]
