"""A fixture for pytest: `pytest_plugins = ["aioqless.contrib.django.fixtures"]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from aioqless.contrib.django.testing import run_tasks

RunTasks: TypeAlias = Callable[[], None]


@pytest.fixture
def aioqless_run_tasks(aioqless_redis: str) -> RunTasks:  # noqa: ARG001  # for its effect
    """Run all tasks and jobs that are ready: see `aioqless.contrib.django.testing.run_tasks`.

    Every client of the test uses the tests' Redis, which is empty at first, as with
    `aioqless_redis`: those of TASKS, and all others.
    """
    return run_tasks
