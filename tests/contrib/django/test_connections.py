"""Database connections of tasks: closed after each run, and replaced after they broke."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from aioqless import Job, job, on_finish
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.connections import hook_with_connections, with_connections
from tests.contrib.django.conftest import RunTasks
from tests.contrib.django.shop import tasks
from tests.contrib.django.shop.models import Order


def test_tasks_of_both_kinds_and_native_handlers_change_rows(
    backend: Backend, run_tasks: RunTasks, sqlite: str
) -> None:
    Order.objects.all().delete()
    Order.objects.bulk_create([Order(number=number) for number in range(3)])
    tasks.pay.enqueue(0)
    tasks.apay.enqueue(1)
    backend.settings.client().put(tasks.pay_natively.data(number=2))
    run_tasks()
    assert list(Order.objects.filter(paid=True).values_list("number", flat=True)) == [0, 1, 2]


def test_connections_of_tasks_are_closed_after_each_run(
    backend: Backend, run_tasks: RunTasks, postgresql: str
) -> None:
    def count() -> int:
        with connections[postgresql].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'task'")
            return int(cursor.fetchone()[0])

    for task in (tasks.query, tasks.aquery):
        for _ in range(3):
            task.enqueue()
    run_tasks()
    assert tasks.calls == [1] * 6
    deadline = time.monotonic() + 60
    while count():  # the server's process of a closed connection ends a little later
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("kind", ["handler", "hook"])
def test_broken_connection_of_a_thread_is_replaced(
    kind: str, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def select(job: Job[Any]) -> int:
        with connections[postgresql].cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    hook, handler = on_finish("job.failed")(select), job(klass="Select")(select)
    run = hook_with_connections(hook).fn if kind == "hook" else with_connections(handler).fn
    # kept between the runs, in which it may break
    monkeypatch.setitem(connections.databases[postgresql], "CONN_MAX_AGE", None)
    monkeypatch.setitem(connections.databases[postgresql], "CONN_HEALTH_CHECKS", True)
    with ThreadPoolExecutor(1) as thread:
        first = int(str(thread.submit(run, None).result()))
        assert thread.submit(run, None).result() == first
        with connections[postgresql].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [first])
        assert thread.submit(run, None).result() != first
        thread.submit(connections.close_all).result()
