"""A fixture for pytest: `pytest_plugins = ["aioqless.contrib.django.fixtures"]`."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from django.conf import settings
from django.test import override_settings

from aioqless import Client
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.handlers import worker_sources
from aioqless.contrib.django.task_framework import task_backends
from aioqless.testing import drain

RunTasks: TypeAlias = Callable[[], None]


@pytest.fixture
def aioqless_run_tasks(aioqless_url: str) -> Iterator[RunTasks]:
    """Run all tasks that are ready, and those that they make ready; not on an event loop.

    The backends of TASKS use the tests' own Redis, in which the keys of their namespaces are
    deleted first.
    """
    backends = [each for each in task_backends.all() if isinstance(each, Backend)]
    tasks: dict[str, Any] = copy.deepcopy(settings.TASKS)
    for backend in backends:
        tasks[backend.alias].setdefault("OPTIONS", {})["url"] = aioqless_url
    with override_settings(TASKS=tasks):
        ours = [_backend(each.alias) for each in backends]
        for backend in ours:
            backend.settings.client().call(_delete_keys)
        yield lambda: asyncio.run(_run_all(ours))
        for backend in ours:
            backend.settings.client().close()


def _backend(alias: str) -> Backend:
    backend = task_backends[alias]
    assert isinstance(backend, Backend)
    return backend


async def _delete_keys(client: Client) -> None:
    async for key in client.redis.scan_iter(f"{client.namespace}:*", count=1000):
        await client.redis.delete(key)


async def _run_all(backends: list[Backend]) -> None:
    for backend in backends:
        url, namespace = backend.settings.url, backend.settings.namespace
        async with Client(url, namespace=namespace) as client:
            sources = worker_sources(backend, relay=False)
            await drain(client, *sources)
            while await _relay(backend, client):
                await drain(client, *sources)


async def _relay(backend: Backend, client: Client) -> int:
    """Put what waits in the outbox, if the backend has one; return how many jobs."""
    if backend.settings.enqueue != "outbox":
        return 0
    from aioqless.contrib.django.outbox import Relay  # imports models, which need Django set up

    return await Relay(client, using=backend.settings.database).once()
