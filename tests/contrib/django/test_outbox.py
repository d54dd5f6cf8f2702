"""The outbox of the ORM: jobs are put once, if their transaction is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command
from django.db import transaction

from aioqless import Client, InvalidData, Worker
from aioqless.contrib.django import outbox
from aioqless.contrib.django.handlers import worker_sources
from aioqless.contrib.django.models import OutboxJob
from aioqless.contrib.django.task_framework import TaskResultDoesNotExist, TaskResultStatus
from tests.contrib.django.conftest import MakeBackend, RunTasks
from tests.contrib.django.shop import tasks
from tests.contrib.django.shop.models import Order


class RollBack(Exception): ...


def rows(database: str) -> int:
    return OutboxJob.objects.using(database).count()


@pytest.fixture
def relay_once(redis_url: str, namespace: str, database: str) -> Callable[[], int]:
    """Put all committed jobs; return how many."""

    async def relay() -> int:
        async with Client(redis_url, namespace=namespace) as client:
            return await outbox.Relay(client, using=database).once()

    return lambda: asyncio.run(relay())


def test_task_is_put_when_its_transaction_has_committed(
    make_backend: MakeBackend, database: str, relay_once: Callable[[], int]
) -> None:
    backend = make_backend(enqueue="outbox", database=database)
    with transaction.atomic(using=database):
        Order.objects.using(database).create(number=1)
        result = tasks.greet.enqueue("Ann")
        assert (result.status, rows(database)) == (TaskResultStatus.READY, 1)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    assert (relay_once(), rows(database)) == (1, 0)
    result.refresh()
    assert result.status == TaskResultStatus.READY
    job = backend.settings.client().call(lambda client: client.jobs.get(result.id))
    assert job and job.priority == -10
    assert relay_once() == 0


def test_task_of_a_rolled_back_transaction_is_not_put(
    make_backend: MakeBackend, database: str, relay_once: Callable[[], int]
) -> None:
    make_backend(enqueue="outbox", database=database)
    with pytest.raises(RollBack), transaction.atomic(using=database):
        tasks.add.enqueue(1)
        raise RollBack
    assert (rows(database), relay_once()) == (0, 0)


def test_on_commit_puts_after_the_commit_and_never_after_a_rollback(
    make_backend: MakeBackend, database: str
) -> None:
    backend = make_backend(enqueue="on_commit", database=database)
    client = backend.settings.client()
    with transaction.atomic(using=database):
        result = tasks.add.enqueue(1)
        assert client.call(lambda client: client.jobs.get(result.id)) is None
        assert result.enqueued_at is None
        with pytest.raises(InvalidData):
            tasks.add.enqueue(float("nan"))  # type: ignore[arg-type]  # it is refused
    assert client.call(lambda client: client.jobs.get(result.id)) and result.enqueued_at
    with pytest.raises(RollBack), transaction.atomic(using=database):
        lost = tasks.add.enqueue(1)
        raise RollBack
    assert client.call(lambda client: client.jobs.get(lost.id)) is None


def test_async_tasks_join_the_transaction_of_djangos_thread(
    make_backend: MakeBackend, sqlite: str
) -> None:
    make_backend(enqueue="outbox", database=sqlite)
    OutboxJob.objects.all().delete()

    async def enqueue() -> None:
        await tasks.add.aenqueue(1)

    from asgiref.sync import async_to_sync

    with pytest.raises(RollBack), transaction.atomic():
        async_to_sync(enqueue)()
        assert rows(sqlite) == 1
        raise RollBack
    assert rows(sqlite) == 0


def test_native_jobs_take_the_options_of_put(
    make_backend: MakeBackend, database: str, relay_once: Callable[[], int]
) -> None:
    client = make_backend().settings.client()
    jid = outbox.put(
        tasks.pay_natively.data(number=3), queue="mail", using=database, tags=["x"], delay=1000
    )
    assert relay_once() == 1
    job = client.call(lambda client: client.jobs.get(jid))
    assert job is not None
    assert (job.klass, job.data, job.tags, job.state) == (
        "shop.Native",
        {"number": 3},
        ["x"],
        "scheduled",
    )


def test_refused_job_stays_with_the_reason_and_blocks_no_other(
    make_backend: MakeBackend, database: str, relay_once: Callable[[], int]
) -> None:
    make_backend()
    outbox.put("K", using=database, jid="itself", depends=["itself"], queue="mail")
    outbox.put("K", using=database, jid="good", queue="mail")
    assert relay_once() == 2
    (row,) = OutboxJob.objects.using(database).all()
    assert "itself" in (row.refused or "")
    assert relay_once() == 0


def test_several_relays_put_each_job_once(
    make_backend: MakeBackend,
    postgresql: str,
    redis_url: str,
    namespace: str,
) -> None:
    backend = make_backend()
    OutboxJob.objects.using(postgresql).all().delete()
    with transaction.atomic(using=postgresql):
        jids = {outbox.put("K", number, using=postgresql, queue="mail") for number in range(250)}

    async def relay() -> int:
        async with Client(redis_url, namespace=namespace) as client:
            return await outbox.Relay(client, using=postgresql).once()

    with ThreadPoolExecutor(3) as threads:
        put = list(threads.map(lambda _: asyncio.run(relay()), range(3)))
    assert sum(put) == 250  # rows that another relay has locked are skipped
    found = backend.settings.client().call(lambda client: client.queue("mail").peek(count=300))
    assert {job.jid for job in found} == jids
    assert rows(postgresql) == 0


def test_worker_relays_the_outbox(
    make_backend: MakeBackend, run_tasks: RunTasks, database: str
) -> None:
    make_backend(enqueue="outbox", database=database)
    call_command("check")
    result = tasks.add.enqueue(1, 2)
    for _ in range(50):  # a burst ends when nothing is ready, perhaps before the relay has begun
        run_tasks()
        if not rows(database):
            break
    run_tasks()
    result.refresh()
    assert result.return_value == 3


def test_worker_ends_if_its_relay_breaks(
    make_backend: MakeBackend, sqlite: str, monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    backend = make_backend(enqueue="outbox")

    async def fail(relay: outbox.Relay) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(outbox.Relay, "run", fail)

    async def run() -> None:
        async with Client(redis_url, namespace=backend.settings.namespace) as client:
            await asyncio.wait_for(Worker(client, *worker_sources(backend)).run(), 60)

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(run())
    assert raised.group_contains(RuntimeError, match="a defect")
