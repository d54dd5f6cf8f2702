"""The tasks of the project; what they do is seen in `calls`."""

from __future__ import annotations

import sys
import threading
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from aioqless import Job, job, on_finish
from aioqless.contrib.django.task import Task, declared_tasks
from aioqless.contrib.django.task_framework import TaskContext, task
from tests.contrib.django.shop.models import Order

calls: list[Any] = []


class Refused(Exception):
    """A class of the project, which errors of tasks name by its path."""


@task
def add(a: int, b: int = 1) -> int:
    calls.append((a, b))
    return a + b


@task(queue_name="mail", priority=10)
async def greet(name: str) -> str:
    calls.append((name, threading.current_thread()))
    return f"hello {name}"


@task
def refuse(message: str) -> None:
    raise Refused(message)


@task
def divide(by: int) -> float:
    try:
        return 1 / by
    except ZeroDivisionError as error:
        raise Refused("several\nlines: with a colon\n  and Indented: ones") from error


@task
def return_object() -> object:
    return object()


@task(takes_context=True)
def attempt(context: TaskContext, word: str) -> list[Any]:
    result = context.task_result
    return [word, context.attempt, result.id, result.status, len(result.worker_ids)]


@task(job_options={"retry_on": ConnectionError, "retries": 2, "backoff": lambda used: 0})
def fail_twice() -> int:
    calls.append("run")
    if len(calls) < 3:
        raise ConnectionError("away")
    return len(calls)


@task
def exit_with(code: int) -> None:
    sys.exit(code)


@task
def pay(number: int) -> None:
    Order.objects.filter(number=number).update(paid=True)
    calls.append(threading.current_thread())


@task
async def apay(number: int) -> None:
    await Order.objects.filter(number=number).aupdate(paid=True)


@job(klass="shop.Native")
def pay_natively(job: Job[Any], number: int) -> None:
    Order.objects.filter(number=number).update(paid=True)


def mark_paid(database: str, number: int) -> int:
    order = Order.objects.using(database).get(number=number)
    order.paid = True
    order.save()
    return order.number


@task
def pay_in(database: str, number: int) -> int:
    return mark_paid(database, number)


@task
async def apay_in(database: str, number: int) -> int:
    return await sync_to_async(mark_paid)(database, number)


@job(klass="shop.PayIn")
def pay_natively_in(job: Job[Any], database: str, number: int) -> int:
    return mark_paid(database, number)


@job(klass="shop.Ship")
def ship(job: Job[Any], database: str, number: int) -> None:
    """Is paid by the hook below."""


@on_finish("job.completed")
def pay_shipped(job: Job[Any], end: str, **fields: Any) -> None:
    if job.klass == "shop.Ship":
        mark_paid(job.data["database"], job.data["number"])


@job(klass="shop.Pack", queue="packing")
def pack(job: Job[Any]) -> None:
    """Run in a queue that is not among QUEUES."""


@job(klass="shop.Count", queue="packing", executor="process", result_ttl=60)
def count_orders(job: Job[Any]) -> int:
    return Order.objects.count()


def select_one() -> None:
    with connections["postgresql"].cursor() as cursor:
        cursor.execute("SET application_name = 'task'")
        cursor.execute("SELECT 1")
        calls.append(cursor.fetchone()[0])


@task
def query() -> None:
    select_one()


@task
async def aquery() -> None:
    await sync_to_async(select_one)()


def tick() -> None:
    calls.append("tick")


def declare_tick() -> Task:
    """Declare a task with a schedule, which not every worker of the tests is to have."""
    declared = task(queue_name="mail", job_options={"every": 3600})(tick)
    declared_tasks.pop(declared.module_path)
    assert isinstance(declared, Task)
    return declared
