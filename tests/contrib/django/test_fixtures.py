"""The fixture for tests of projects."""

from __future__ import annotations

import asyncio

import pytest
from django.test import override_settings

from aioqless import Client, SyncClient
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.fixtures import RunTasks
from aioqless.contrib.django.task_framework import AnyResult, TaskResultStatus, task_backends
from tests.contrib.django.shop import tasks

pytest_plugins = ["aioqless.contrib.django.fixtures"]


@pytest.fixture
def project(sqlite: str) -> object:
    """The settings of a developer, whose Redis isn't that of tests and doesn't run."""
    options = {"url": "redis://localhost:1", "namespace": "shop", "enqueue": "outbox"}
    backend = {"BACKEND": "aioqless.contrib.django.Backend", "QUEUES": ["default", "mail"]}
    with override_settings(TASKS={"default": {**backend, "OPTIONS": options}}):
        yield


def url_of(client: SyncClient) -> str | None:
    async def read(client: Client) -> str | None:
        return client.url

    return client.call(read)


def test_fixture_runs_tasks_on_the_redis_of_tests_in_the_namespace_of_the_settings(
    project: object, aioqless_run_tasks: RunTasks, aioqless_url: str
) -> None:
    backend = task_backends["default"]
    assert isinstance(backend, Backend)
    assert (url_of(backend.settings.client()), backend.settings.namespace) == (aioqless_url, "shop")
    result = tasks.greet.enqueue("Ann")  # into the outbox
    aioqless_run_tasks()
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert str(result.return_value) == "hello Ann"


async def test_coroutine_runs_tasks_in_a_thread(
    project: object, aioqless_run_tasks: RunTasks
) -> None:
    results: list[AnyResult] = [await tasks.greet.aenqueue("Ann"), await tasks.add.aenqueue(1)]
    await asyncio.to_thread(aioqless_run_tasks)
    for result in results:
        await result.arefresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
    with pytest.raises(RuntimeError, match="event loop"):
        aioqless_run_tasks()
