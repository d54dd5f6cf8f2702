"""Recurring jobs declared with handlers."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless import Client, Handler, Job, job
from aioqless.client.recurring import RecurringJob
from aioqless.worker import ReconnectDelays
from tests.conftest import Until
from tests.server import OwnServer
from tests.worker.conftest import Lines, Work


async def _digest(job: Job) -> None: ...


async def _other(job: Job) -> None: ...


def _handler(klass: str = "digest", fn: Any = _digest, **options: Any) -> Handler[...]:
    declared: Handler[...] = job(klass=klass, **options)(fn)
    return declared


async def _started(work: Work, until: Until, *handlers: Handler[...], **settings: Any) -> None:
    """Run a worker with these handlers until it has declared them."""
    async with work(*handlers, burst=True, **settings) as worker:
        await until(lambda: not worker.healthy)


async def _found(client: Client, jid: str = "digest") -> RecurringJob:
    found = await client.recurring.get(jid)
    assert found is not None
    return found


async def test_declared_schedules_are_created_when_a_worker_starts(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    daily = _handler(
        "daily",
        _other,
        cron="0 9 * * mon-fri",
        timezone="Europe/Paris",
        data={"a": []},
        queue="reports",
        retries=2,
        backlog=3,
    )
    before = await client.internals.store.now()
    await _started(work, until, _handler(every=3600), daily)
    hourly = await _found(client)
    assert (hourly.klass, hourly.interval, hourly.queue, hourly.retries, hourly.coalesce) == (
        "digest",
        3600,
        "default",
        5,
        True,
    )
    now = await client.internals.store.now()
    assert hourly.next is not None and before + 3600 <= hourly.next <= now + 3600, (
        "a deploy sets nothing off"
    )
    found = await _found(client, "daily")
    assert (found.cron, found.timezone, found.raw_data, found.queue) == (
        "0 9 * * mon-fri",
        "Europe/Paris",
        '{"a":[]}',
        "reports",
    )
    assert (found.retries, found.backlog, found.coalesce) == (2, 3, False)
    assert {line["done"] for line in lines.of("recurring.declared")} == {"made"}
    assert found.declared is not None and before <= found.declared <= now


async def test_second_start_updates_only_changed_schedules(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    await _started(work, until, _handler(every=3600, data=1))
    first = await _found(client)
    await _started(work, until, _handler(every=3600, data=2))
    second = await _found(client)
    assert (second.data, second.next) == (2, first.next)
    await _started(work, until, _handler(every=60, data=2))
    third = await _found(client)
    assert (
        third.interval == 60
        and third.next is not None
        and second.next is not None
        and third.next < second.next
    )
    assert [line["done"] for line in lines.of("recurring.declared")] == ["made", "kept", "retimed"]


async def test_schedule_removed_from_the_code_is_deleted_at_the_next_start(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    await _started(work, until, _handler(every=3600), _handler("daily", _other, cron="0 9 * * *"))
    await _started(work, until, _handler(), _handler("daily", _other))
    assert [each async for each in client.recurring.all()] == []
    assert {line["recurring"] for line in lines.of("recurring.dropped")} == {"digest", "daily"}


async def test_schedules_of_other_programs_are_kept(
    client: Client, work: Work, until: Until
) -> None:
    await _started(work, until, _handler("their", _other, every=3600))
    await _started(work, until, _handler(every=3600))
    assert {each.jid async for each in client.recurring.all()} == {"their", "digest"}


async def test_renamed_handler_keeps_its_schedule(client: Client, work: Work, until: Until) -> None:
    await _started(work, until, _handler("old.digest", every=3600))
    await _started(work, until, _handler("new.digest", aliases=["old.digest"], every=3600))
    assert [each.jid async for each in client.recurring.all()] == ["new.digest"]


async def test_queue_of_a_schedule_is_its_handlers_whatever_workers_serve(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    for queues in (("mail",), ("slow", "mail"), ("m*",)):
        await _started(work, until, _handler(every=3600), queues=queues)
        assert (await _found(client)).queue == "default"
    assert lines.of("worker.queues_skipped", queues=("default",))
    await _started(work, until, _handler(every=3600, queue="slow"), queues=("mail",))
    assert (await _found(client)).queue == "slow"
    await _started(work, until, _handler(every=3600), queues=("mail",))
    assert (await _found(client)).queue == "default"


async def test_worker_without_scheduler_declares_and_deletes_nothing(
    client: Client, work: Work, until: Until
) -> None:
    await _started(work, until, _handler(every=3600))
    await _started(work, until, _handler(), scheduler=False)
    assert (await _found(client)).interval == 3600


@pytest.mark.usefixtures("frequent_polls")
async def test_idle_worker_reviews_what_other_clients_may_have_done(
    client: Client, work: Work, until: Until
) -> None:
    agenda, failures = f"{client.namespace}:x:agenda", '{"kind":"review failures","about":""}'
    async with work(_handler(every=3600, on_failure=_handler("undo", _other))):
        await until(lambda: client.redis.zscore(agenda, failures))
        for _ in range(2):
            due = await client.internals.store.now()
            await client.redis.zadd(agenda, {failures: due})

            async def is_scheduled_again() -> bool:
                return (await client.redis.zscore(agenda, failures) or 0) >= due + 20  # noqa: B023

            await until(is_scheduled_again)


# Declarations lost by Redis


@pytest.fixture
def frequent_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make schedulers poll often."""
    monkeypatch.setattr("aioqless.worker.parts.scheduler.LONGEST_PAUSE", 0.02)


async def _lost(redis: Redis, namespace: str) -> None:
    """Delete all keys of a namespace, as FLUSHALL does."""
    await redis.unlink(*[key async for key in redis.scan_iter(f"{namespace}:*")])


async def _calls(client: Client) -> int:
    """Return the number of script calls so far."""
    stats = await client.redis.info("commandstats")
    return int(stats["cmdstat_evalsha"]["calls"])


@pytest.mark.usefixtures("frequent_polls")
async def test_schedules_are_declared_again_after_redis_was_flushed(
    client: Client, redis: Redis, work: Work, lines: Lines, until: Until
) -> None:
    nightly = _handler("nightly", _other, cron="0 2 * * *")
    async with work(_handler(every=3600), nightly):
        await until(lambda: len(lines.of("recurring.declared")) == 2)
        for times in (1, 2):
            await _lost(redis, client.namespace)
            await until(lambda: len(lines.of("recurring.lost", level="warning")) == times)  # noqa: B023
            await until(lambda: len(lines.of("recurring.declared", done="made")) == 2 + 2 * times)  # noqa: B023
            assert [
                (await _found(client, jid)).declared is not None for jid in ("digest", "nightly")
            ] == [True, True]


@pytest.mark.usefixtures("frequent_polls")
async def test_schedules_missing_from_a_restored_backup_are_declared_again(
    client: Client, redis: Redis, work: Work, lines: Lines, until: Until
) -> None:
    async with work(_handler(every=3600)):
        await until(lambda: lines.of("recurring.declared", done="made"))
        before = await redis.dump(f"{client.namespace}:x:declarations")
        assert before
        async with work(_handler("new", every=60)):
            await until(lambda: lines.of("recurring.declared", recurring="new", done="made"))
            await (await _found(client, "new")).cancel()
            await redis.restore(f"{client.namespace}:x:declarations", 0, before, replace=True)
            await until(
                lambda: len(lines.of("recurring.declared", recurring="new", done="made")) == 2
            )
    assert not lines.of("recurring.declared", recurring="digest", done="retimed")


@pytest.mark.usefixtures("frequent_polls")
async def test_schedule_canceled_by_an_operator_stays_canceled_until_a_worker_starts(
    client: Client, work: Work, lines: Lines, until: Until
) -> None:
    async with work(_handler(every=3600)):
        await until(lambda: lines.of("recurring.declared"))
        await (await _found(client)).cancel()
        before = await _calls(client)

        async def has_looked() -> bool:
            return await _calls(client) >= before + 5

        await until(has_looked)
        assert await client.recurring.get("digest") is None and not lines.of("recurring.lost")
    await _started(work, until, _handler(every=3600))
    assert (await _found(client)).interval == 3600


async def test_schedules_are_declared_as_soon_as_an_emptied_server_returns(
    own_server: OwnServer, work: Work, lines: Lines, until: Until, tmp_path: Path
) -> None:
    async with (
        Client(own_server.url) as client,
        work(
            _handler(every=3600), using=client, reconnect=ReconnectDelays(first=0.05, longest=0.1)
        ),
    ):
        await until(lambda: lines.of("recurring.declared"))
        own_server.kill()
        shutil.rmtree(tmp_path / "appendonlydir")
        await asyncio.to_thread(own_server.start)
        await until(lambda: len(lines.of("recurring.declared", done="made")) == 2, 12)
        assert (await _found(client)).interval == 3600
        assert lines.of("recurring.lost")
