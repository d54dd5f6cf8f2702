"""Tests of Django projects: run the tasks and handlers of a test, in its transaction if it has one.

For unittest, `class OrderTests(TaskTestMixin, TestCase)`; fixtures.py has the fixture for pytest.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.db import connections

from aioqless import Client, Handler, NewJob
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.connections import (
    callers_connections,
    hook_on_callers_thread,
    on_callers_thread,
)
from aioqless.contrib.django.handlers import worker_sources
from aioqless.contrib.django.task_framework import task_backends
from aioqless.handlers import Hook, Source
from aioqless.testing import Performed, RedisTestMixin, run_jobs
from aioqless.testing import perform as perform_in_thread


class TaskTestMixin(RedisTestMixin):
    """Isolates each test, and runs its tasks: `class OrderTests(TaskTestMixin, TestCase)`.

    It works with Django's `TestCase` and `TransactionTestCase`.
    """

    def run_tasks(self) -> None:
        """Run all tasks and jobs that are ready: see the function `run_tasks`."""
        run_tasks()


def run_tasks() -> None:
    """Run all ready tasks and jobs, and the jobs that these make ready; not on an event loop.

    Within a transaction, as in a test of Django's `TestCase`, plain functions, hooks too, run on
    the calling thread, and coroutines use its database connections, so that they see what it has
    written. Otherwise they run as in a worker.

    Raises:
        RuntimeError: The caller is on an event loop.
        AioqlessError: A handler forgot an `await`.
    """
    if any(each.in_atomic_block for each in connections.all(initialized_only=True)):
        with callers_connections():
            async_to_sync(_run_all)(here=True)
    else:
        async_to_sync(_run_all)(here=False)


async def perform(new: NewJob, **options: Any) -> Performed:
    """Run one job without Redis, on the database connections of the test.

    It is `aioqless.testing.perform`, but a plain function runs on the thread of the test, so that
    it sees the transaction of Django's `TestCase`: in a coroutine `await perform(...)`, else
    `async_to_sync(perform)(...)`.

    Args:
        new: The job, for a handler.
        options: As for `aioqless.testing.perform`.
    """
    if isinstance(new, NewJob) and isinstance(new.klass, Handler):
        new = new.copy(klass=on_callers_thread(new.klass))
    return await perform_in_thread(new, **options)


async def _run_all(*, here: bool) -> None:
    for backend in [each for each in task_backends.all() if isinstance(each, Backend)]:
        url, namespace = backend.settings.url, backend.settings.namespace
        sources = worker_sources(backend, relay=False)
        if here:
            sources = [_run_here(each) for each in sources]
        async with Client(url, namespace=namespace) as client:
            await run_jobs(client, *sources)
            while await _relay(backend, client):
                await run_jobs(client, *sources)


def _run_here(source: Source) -> Source:
    if isinstance(source, Hook):
        return hook_on_callers_thread(source)
    return on_callers_thread(source) if isinstance(source, Handler) else source


async def _relay(backend: Backend, client: Client) -> int:
    """Put what waits in the outbox, if the backend has one; return how many jobs."""
    if backend.settings.enqueue != "outbox":
        return 0
    from aioqless.contrib.django.outbox import Relay  # imports models, which need Django set up

    return await Relay(client, using=backend.settings.database).once()
