"""The examples of docs/django.md, in one module of the project."""

from __future__ import annotations

import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import django
import pytest
from django.test import override_settings

from aioqless.contrib.django.fixtures import RunTasks
from aioqless.contrib.django.task_framework import TaskResultStatus, task_backends
from tests.contrib.django.shop import models

PAGE = (Path(__file__).parents[3] / "docs" / "django.md").read_text("utf-8")
SETTINGS, TASKS, VIEWS, OPTIONS, OUTBOX, STEPS, FLOW, CASE, IMMEDIATE, PLUGIN, TEST = re.findall(
    r"```python\n(.*?)```", PAGE, re.DOTALL
)
exec(PLUGIN)  # pytest_plugins of this module


@pytest.fixture
def page(redis_url: str, sqlite: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of a module that has been run in the project of the page."""
    settings: dict[str, Any] = {}
    exec(SETTINGS, settings)
    tasks = settings["TASKS"]
    tasks["default"]["OPTIONS"]["url"] = redis_url
    monkeypatch.setenv("AIOQLESS_NAMESPACE", "page")
    shop = ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.models", models)
    models.Order.objects.all().delete()
    with override_settings(TASKS=tasks):
        yield {"__name__": "shop.tasks"}
        task_backends["default"].settings.client().close()  # type: ignore[attr-defined]  # ours


def run(code: str, names: dict[str, Any]) -> None:
    if django.VERSION < (6,):
        code = code.replace("from django.tasks import", "from django_tasks import")
    else:
        code = code.replace("from django_tasks import", "from django.tasks import")
    exec(code, names)


def test_workflow_of_the_page_is_put(
    page: dict[str, Any], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    run(STEPS + FLOW, page)
    counts = page["queues"].call(lambda client: client.queue("default").counts())
    page["queues"].close()
    assert (counts.waiting, counts.depends) == (1, 1)


def test_task_of_the_page_is_enqueued_and_run(
    page: dict[str, Any], aioqless_run_tasks: RunTasks
) -> None:
    models.Order.objects.create(number=1042)
    run(TASKS + OPTIONS, page)
    run(VIEWS.partition("...")[0], page)
    aioqless_run_tasks()
    assert page["confirm"].get_result(page["result"].id).status == TaskResultStatus.SUCCESSFUL
    run(VIEWS.partition("...")[2], page)
    assert page["charge"].job_options["retries"] == 3


def test_test_of_the_page_passes(
    page: dict[str, Any], aioqless_run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(TASKS, page)
    monkeypatch.setitem(sys.modules, "shop.tasks", SimpleNamespace(**page))
    run(re.sub("@pytest.mark.django_db.*", "", TEST), page)  # a mark of pytest-django
    page["test_order_is_confirmed"](aioqless_run_tasks)


def test_case_of_the_page_passes(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    run(TASKS + STEPS, page)
    monkeypatch.setitem(sys.modules, "shop.tasks", SimpleNamespace(**page))
    run(CASE, page)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(page["OrderTests"]).run(result)
    assert (result.testsRun, result.errors, result.failures) == (2, [], [])


def test_immediate_backend_of_the_page_runs_a_task(page: dict[str, Any]) -> None:
    models.Order.objects.create(number=1042)
    exec(IMMEDIATE, page)
    with override_settings(TASKS=page["TASKS"]):
        run(TASKS + OPTIONS, page)
        result = page["confirm"].enqueue(1042)
    assert result.return_value == "order 1042 is confirmed"


def test_outbox_of_the_page_puts_a_row(page: dict[str, Any]) -> None:
    run("from shop.models import Order\n" + OUTBOX, page)
    assert len(page["jid"]) == 24
