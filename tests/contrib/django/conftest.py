"""A Django project on SQLite and on PostgreSQL, and workers that run its tasks."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import django
import pytest

FOLDER = Path(tempfile.mkdtemp(prefix="aioqless-django-"))
FOLDER.chmod(0o755)
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
SERVER = FOLDER / "postgresql"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(FOLDER / "shop.db"),
        "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE"},
    },
    "postgresql": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": str(SERVER),
    },
}
os.environ["SHOP_DATABASES"] = json.dumps(DATABASES)
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.contrib.django.shop.settings"
django.setup()

from django.core.management import call_command  # noqa: E402  # Django is set up above
from django.db import connections  # noqa: E402
from django.test import override_settings  # noqa: E402

from aioqless import Client, Settings, Worker  # noqa: E402
from aioqless.contrib.django.backend import Backend  # noqa: E402
from aioqless.contrib.django.handlers import worker_sources  # noqa: E402
from aioqless.contrib.django.models import OutboxJob  # noqa: E402
from aioqless.contrib.django.task_framework import (  # noqa: E402
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from tests.contrib.django.postgresql import running_server  # noqa: E402
from tests.contrib.django.shop.models import Order  # noqa: E402
from tests.contrib.django.shop.tasks import calls  # noqa: E402

MakeBackend: TypeAlias = Callable[..., Backend]
RunTasks: TypeAlias = Callable[[], None]


@pytest.fixture
def make_backend(redis_url: str, namespace: str) -> Iterator[MakeBackend]:
    """Set TASKS to a backend with options, in the test's namespace."""
    with override_settings() as _:
        made: list[Backend] = []

        def make(**options: object) -> Backend:
            params = {
                "BACKEND": "aioqless.contrib.django.Backend",
                "QUEUES": ["default", "mail"],
                "OPTIONS": {"url": redis_url, "namespace": namespace, **options},
            }
            stack.enable_with({"default": params})
            backend = task_backends["default"]
            assert isinstance(backend, Backend)
            made.append(backend)
            return backend

        stack = _Tasks()
        yield make
        stack.disable()
        for backend in made:
            backend.settings.client().close()


class _Tasks:
    """Overrides the setting TASKS."""

    def __init__(self) -> None:
        self._overrides: list[override_settings] = []

    def enable_with(self, tasks: dict[str, object]) -> None:
        override = override_settings(TASKS=tasks)
        override.enable()
        self._overrides.append(override)

    def disable(self) -> None:
        for override in reversed(self._overrides):
            override.disable()


@pytest.fixture
def backend(make_backend: MakeBackend) -> Backend:
    """The default backend."""
    calls.clear()
    return make_backend()


@pytest.fixture
def run_tasks(redis_url: str, namespace: str) -> RunTasks:
    """Run all tasks that are ready, with a worker on an event loop of its own."""

    async def run() -> None:
        backend = task_backends["default"]
        assert isinstance(backend, Backend)
        settings = Settings(queues=tuple(sorted(backend.queues)), burst=True, shutdown_timeout=0)
        async with Client(redis_url, namespace=namespace) as client:
            await Worker(client, *worker_sources(backend), settings=settings).run()

    return lambda: asyncio.run(run())


@pytest.fixture
def signals() -> Iterator[list[tuple[str, str, type]]]:
    """The signals that are sent: name, status of the result, sender."""
    sent: list[tuple[str, str, type]] = []

    def receive(name: str) -> Callable[..., None]:
        return lambda sender, task_result, **_: sent.append((name, task_result.status, sender))

    known = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    receivers = [(signal, receive(name)) for name, signal in known.items()]
    for signal, receiver in receivers:
        signal.connect(receiver)
    yield sent
    for signal, receiver in receivers:
        signal.disconnect(receiver)


@pytest.fixture(scope="session")
def sqlite() -> str:
    """The alias of a SQLite database with tables."""
    call_command("migrate", database="default", verbosity=0)
    return "default"


@pytest.fixture(scope="session")
def postgresql(postgresql_program: str) -> Iterator[str]:
    """The alias of a PostgreSQL database with tables."""
    SERVER.mkdir()
    with running_server(postgresql_program, SERVER):
        call_command("migrate", database="postgresql", verbosity=0)
        yield "postgresql"
        connections["postgresql"].close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.program)])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The alias of an empty database."""
    alias: str = request.getfixturevalue(request.param)
    Order.objects.using(alias).all().delete()
    OutboxJob.objects.using(alias).all().delete()
    yield alias
    connections[alias].close()
