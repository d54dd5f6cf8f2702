"""The backend that runs tasks when they are enqueued."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import TestCase, override_settings
from django.utils import timezone

import aioqless
from aioqless.contrib.django import ImmediateBackend
from aioqless.contrib.django.task import declared_tasks
from aioqless.contrib.django.task_framework import (
    TaskResultStatus,
    task,
)
from tests.contrib.django.shop import tasks
from tests.contrib.django.shop.models import Order
from tests.contrib.django.test_testing import run_class

BACKEND = "aioqless.contrib.django.ImmediateBackend"
SETTING = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"]}}


@pytest.fixture(autouse=True)
def immediate() -> Iterator[None]:
    tasks.calls.clear()
    with override_settings(TASKS=SETTING):
        yield


@task(job_options={"retry_on": ConnectionError, "retries": 2})
def fail_always() -> None:
    tasks.calls.append("run")
    raise ConnectionError(f"away {len(tasks.calls)}")


@task(job_options={"retries": 3})
def ask_again() -> int:
    tasks.calls.append("run")
    if len(tasks.calls) < 3:
        raise aioqless.Retry(delay=3600)
    return len(tasks.calls)


@task(job_options={"retry_on": Exception, "retries": 3})
def give_up() -> None:
    tasks.calls.append("run")
    raise aioqless.Fail("no such order", group="orders")


def misspelled() -> None: ...


def test_task_runs_in_the_transaction_of_a_test_case(database: str) -> None:
    class Tests(TestCase):
        databases = {database}  # noqa: RUF012  # as Django has it

        def test_rows_are_seen(self) -> None:
            Order.objects.using(database).create(number=1)
            for pay in (tasks.pay_in, tasks.apay_in):
                result = pay.enqueue(database, 1)
                assert result.status == TaskResultStatus.SUCCESSFUL, result.errors
                assert result.return_value == 1
            assert Order.objects.using(database).get(number=1).paid

    run_class(Tests)
    assert not Order.objects.using(database).exists()


def test_task_runs_at_once_on_the_thread_that_enqueues_it(database: str) -> None:
    with transaction.atomic(using=database):
        Order.objects.using(database).create(number=1)
        later = tasks.pay_in.using(run_after=timezone.now() + timedelta(hours=1))
        assert later.enqueue(database, 1).return_value == 1
        transaction.set_rollback(True, using=database)
    result = tasks.greet.enqueue(name="Ann")
    assert (str(result.return_value), result.attempts) == ("hello Ann", 1)
    tasks.pay.enqueue(number=1)
    assert tasks.calls[-1] is threading.current_thread()


async def test_coroutine_enqueues_a_task() -> None:
    assert (await tasks.add.aenqueue(1, b=3)).return_value == 4


def test_retry_runs_again_at_once_at_most_as_often_as_the_task_says() -> None:
    result = tasks.fail_twice.enqueue()
    assert (result.return_value, result.attempts, result.errors) == (3, 3, [])
    tasks.calls.clear()
    failed = fail_always.enqueue()
    assert (failed.status, failed.attempts) == (TaskResultStatus.FAILED, 3)
    (error,) = failed.errors
    assert error.exception_class is ConnectionError
    assert error.traceback.endswith("ConnectionError: away 3\n")
    tasks.calls.clear()
    assert ask_again.enqueue().return_value == 3
    tasks.calls.clear()
    assert give_up.enqueue().attempts == 1


def test_error_without_retry_is_in_the_result() -> None:
    result = tasks.refuse.enqueue("no money")
    assert (result.status, result.is_finished) == (TaskResultStatus.FAILED, True)
    assert result.errors[0].exception_class is tasks.Refused
    assert tasks.return_object.enqueue().errors[0].exception_class is TypeError
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


def test_context_has_the_result() -> None:
    result = tasks.attempt.enqueue("hi")
    assert result.return_value == ["hi", 1, result.id, TaskResultStatus.RUNNING, 1]


def test_signals_are_sent(signals: list[tuple[str, str, type]]) -> None:
    tasks.add.enqueue(1)
    assert signals == [
        ("enqueued", "READY", ImmediateBackend),
        ("started", "RUNNING", ImmediateBackend),
        ("finished", "SUCCESSFUL", ImmediateBackend),
    ]


def test_wrong_job_options_are_refused_when_a_task_is_enqueued() -> None:
    declared = task(job_options={"timeotu": 3})(misspelled)
    declared_tasks.pop(declared.module_path)  # other tests run all that are declared
    with pytest.raises(ImproperlyConfigured, match="timeotu"):
        declared.enqueue()
    with (
        override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": {"ulr": ""}}}),
        pytest.raises(ImproperlyConfigured, match="ulr"),
    ):
        tasks.add.enqueue(1)
