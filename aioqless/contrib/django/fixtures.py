"""A fixture for pytest: `pytest_plugins = ["aioqless.contrib.django.fixtures"]`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import pytest

from aioqless import Client
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.handlers import worker_sources
from aioqless.contrib.django.task_framework import task_backends
from aioqless.testing import drain

RunTasks: TypeAlias = Callable[[], None]


@pytest.fixture
def aioqless_run_tasks(aioqless_redis: str) -> RunTasks:  # noqa: ARG001  # for its effect
    """Run all tasks that are ready, and those that they make ready; not on an event loop.

    Every client of the test uses the tests' Redis, which is empty at first, as with
    `aioqless_redis`: those of TASKS, and all others.
    """
    return lambda: asyncio.run(_run_all())


async def _run_all() -> None:
    for backend in [each for each in task_backends.all() if isinstance(each, Backend)]:
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
