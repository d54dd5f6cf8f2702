"""The fixture for tests of projects."""

from __future__ import annotations

import pytest
from django.test import override_settings

from aioqless import SyncClient
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.fixtures import RunTasks
from aioqless.contrib.django.task_framework import TaskResultStatus, task_backends
from tests.contrib.django.shop import tasks

pytest_plugins = ["aioqless.contrib.django.fixtures"]


@pytest.fixture
def project(sqlite: str) -> object:
    """The settings of a developer, whose Redis isn't that of tests and doesn't run."""
    options = {"url": "redis://localhost:1", "namespace": "shop", "enqueue": "outbox"}
    backend = {"BACKEND": "aioqless.contrib.django.Backend", "QUEUES": ["default", "mail"]}
    with override_settings(TASKS={"default": {**backend, "OPTIONS": options}}):
        yield


def test_fixture_runs_tasks_on_the_redis_of_tests_in_the_namespace_of_the_settings(
    project: object, aioqless_run_tasks: RunTasks, aioqless_url: str
) -> None:
    backend = task_backends["default"]
    assert isinstance(backend, Backend)
    assert (backend.settings.url, backend.settings.namespace) == (aioqless_url, "shop")
    result = tasks.greet.enqueue("Ann")  # into the outbox
    aioqless_run_tasks()
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert str(result.return_value) == "hello Ann"


def test_test_begins_without_the_jobs_of_another(
    project: object, aioqless_url: str, request: pytest.FixtureRequest
) -> None:
    client = SyncClient(aioqless_url, namespace="shop")
    client.put("Left")
    assert client.call(lambda each: each.queues())
    request.getfixturevalue("aioqless_run_tasks")
    assert client.call(lambda each: each.queues()) == []
    client.close()
