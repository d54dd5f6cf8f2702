"""Test cases of Django and unittest that use our mixin, on both databases."""

from __future__ import annotations

import unittest
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import TestCase, TransactionTestCase, override_settings

from aioqless import AioqlessError, SyncClient, chain
from aioqless.contrib.django.task_framework import AnyResult, TaskResultStatus
from aioqless.contrib.django.testing import TaskTestMixin, perform
from aioqless.testing import PutJob, RedisTestMixin, perform_sync, put_jobs
from tests.contrib.django.shop import tasks
from tests.contrib.django.shop.models import Order

queues = SyncClient("redis://localhost:1", namespace="shop")
OPTIONS = {"url": "redis://localhost:1", "namespace": "shop"}


def tasks_setting(**options: object) -> dict[str, Any]:
    backend = {"BACKEND": "aioqless.contrib.django.Backend", "QUEUES": ["default", "mail"]}
    return {"default": {**backend, "OPTIONS": {**OPTIONS, **options}}}


def run_class(case: type[unittest.TestCase]) -> None:
    """Run the tests of a class, as unittest does."""
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun and result.wasSuccessful(), "".join(
        text for _, text in [*result.errors, *result.failures]
    )


class Steps(TaskTestMixin):
    """Tests that pass in each class of Django, with each database."""

    __test__ = False  # for pytest: they are tests of the classes below
    database: str

    def setUp(self) -> None:
        super().setUp()
        Order.objects.using(self.database).all().delete()
        orders = [Order(number=number) for number in range(4)]
        Order.objects.using(self.database).bulk_create(orders)

    def paid(self) -> list[int]:
        orders = Order.objects.using(self.database).filter(paid=True).order_by("number")
        return list(orders.values_list("number", flat=True))

    def test_tasks_and_jobs_of_all_kinds_see_rows_of_the_test(self) -> None:
        results: list[AnyResult] = [
            tasks.pay_in.enqueue(self.database, 0),
            tasks.apay_in.enqueue(self.database, 1),
        ]
        steps = [tasks.pay_natively_in.data(self.database, number) for number in (2, 3)]
        queues.put_flow(chain(*steps))
        self.run_tasks()
        assert self.paid() == [0, 1, 2, 3]
        klasses = [tasks.pay_in.module_path, tasks.apay_in.module_path, "shop.PayIn", "shop.PayIn"]
        assert [put.klass for put in put_jobs(queues)] == klasses  # complete ones, too
        for result in results:
            result.refresh()
            assert result.status == TaskResultStatus.SUCCESSFUL

    def test_hook_sees_rows_of_the_test(self) -> None:
        queues.put(tasks.ship.data(self.database, 1))
        self.run_tasks()
        assert self.paid() == [1]

    def test_each_begins_with_an_empty_redis(self) -> None:
        assert put_jobs(queues) == []
        queues.put(tasks.pay_natively_in.data(self.database, 1))
        assert [put.klass for put in put_jobs(queues)] == ["shop.PayIn"]

    test_each_begins_with_an_empty_redis_again = test_each_begins_with_an_empty_redis


class TransactionSteps(Steps):
    """Tests that pass within the transaction of Django's `TestCase`."""

    def test_handler_that_is_performed_sees_rows_of_the_test(self) -> None:
        ended = async_to_sync(perform)(tasks.pay_natively_in.data(self.database, 2))
        assert (ended.result, self.paid()) == (2, [2])
        ended = perform_sync(tasks.pay_natively_in.data(self.database, 3))
        assert (ended.result, self.paid()) == (3, [2, 3])

    async def test_handler_that_is_awaited_sees_rows_of_the_test(self) -> None:
        ended = await perform(tasks.pay_natively_in.data(self.database, 2))
        assert (ended.result, await sync_to_async(self.paid)()) == (2, [2])

    def test_outbox_is_put(self) -> None:
        with override_settings(TASKS=tasks_setting(enqueue="outbox", database=self.database)):
            tasks.pay_in.enqueue(self.database, 0)
            assert put_jobs(queues) == []
            self.run_tasks()
            assert self.paid() == [0]


@pytest.mark.parametrize("kind", [TestCase, TransactionTestCase])
def test_cases_of_django_run_tasks(kind: type[TransactionTestCase], database: str) -> None:
    class Tests(TransactionSteps if kind is TestCase else Steps, kind):  # type: ignore[misc,valid-type]  # chosen here
        databases = frozenset({database})

        def _fixture_teardown(self) -> None:
            if kind is TestCase:
                super()._fixture_teardown()  # that of the other flushes all tables

    Tests.database = database
    with override_settings(TASKS=tasks_setting()):
        run_class(Tests)


def test_case_of_unittest_is_isolated() -> None:
    class Tests(RedisTestMixin):
        def test_put_jobs_are_those_of_the_test(self) -> None:
            queues.put_many([tasks.pay_natively_in.data("default", number) for number in range(3)])
            queues.put(tasks.pack.data(), delay=60, priority=2, tags=["new"])
            puts = put_jobs(queues)
            assert [put.data for put in puts[:3]] == [
                {"database": "default", "number": number} for number in range(3)
            ]
            options = {"delay": 60, "priority": 2, "tags": ["new"]}
            assert puts[3:] == [PutJob("shop.Pack", None, "packing", options, puts[3].jid)]
            assert put_jobs(queues, tasks.pack) == puts[3:]

    run_class(Tests)
    with pytest.raises(AioqlessError, match="aioqless_redis"):
        put_jobs(queues)
