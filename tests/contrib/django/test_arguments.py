"""Arguments and delays of tasks, which are checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings
from django.utils import timezone

from aioqless.contrib.django import Backend, ImmediateBackend
from aioqless.contrib.django.arguments import check_arguments
from aioqless.contrib.django.models import OutboxJob
from aioqless.contrib.django.task_framework import AnyTask, TaskContext, task
from aioqless.testing import put_jobs
from tests.contrib.django.shop import tasks

if TYPE_CHECKING:
    from decimal import Decimal

OPTIONS = {"url": "redis://localhost:1"}
add: Any = tasks.add  # `using` of django-tasks' type has no delay


@pytest.fixture(
    params=[
        (Backend, "now"),
        (Backend, "on_commit"),
        (Backend, "outbox"),
        (ImmediateBackend, "now"),
    ]
)
def project(request: pytest.FixtureRequest, sqlite: str, aioqless_redis: str) -> Iterator[None]:
    kind, enqueue = request.param
    backend = {
        "BACKEND": f"aioqless.contrib.django.{kind.__name__}",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {**OPTIONS, "enqueue": enqueue},
    }
    tasks.calls.clear()
    OutboxJob.objects.all().delete()
    with override_settings(TASKS={"default": backend}):
        yield


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'a'; it takes"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"c": 1}, "unexpected keyword argument 'c'"),
        (("one",), {}, "argument 'a' is not of its type: Expected `int`, got `str`"),
        ((1,), {"b": 1.5}, "argument 'b' is not of its type"),
        ((None,), {}, "argument 'a' is not of its type"),
    ],
)
def test_arguments_that_the_function_does_not_take_are_refused(
    project: None, args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> None:
    with pytest.raises(TypeError, match=r"tasks\.add: ") as refused:
        tasks.add.enqueue(*args, **kwargs)
    assert why in str(refused.value)
    assert tasks.calls == [] and not OutboxJob.objects.exists()


@task
def take_all(
    when: datetime,
    ratio: float = 1.0,
    maybe: int = None,  # type: ignore[assignment]  # noqa: RUF013  # as older code has it
    *rest: int,
    own: Backend | None = None,
    **more: str,
) -> None: ...


@task
def take_unresolved(price: Decimal, count: int) -> None: ...


@task(takes_context=True)
def take_context(context: TaskContext, word: str) -> None: ...


@pytest.mark.parametrize(
    ("declared", "args", "kwargs"),
    [
        (take_all, ["2026-01-01T00:00:00Z", 1, None, "three"], {"own": {"a": 1}, "x": 5}),
        (take_unresolved, ["1.5", "many"], {}),
        (take_context, ["hi"], {}),
        (take_context, [], {"word": "hi"}),
    ],
)
def test_what_can_not_be_checked_is_taken(
    declared: AnyTask, args: list[Any], kwargs: dict[str, Any]
) -> None:
    check_arguments(declared, args, kwargs)


@pytest.mark.parametrize("delay", [60, timedelta(minutes=1)])
def test_delay_counts_from_the_put(delay: Any, aioqless_redis: str) -> None:
    with override_settings(
        TASKS={"default": {"BACKEND": "aioqless.contrib.django.Backend", "OPTIONS": OPTIONS}}
    ):
        add.using(delay=delay).enqueue(1)
        backend = tasks.add.get_backend()
        assert isinstance(backend, Backend)
        (put,) = put_jobs(backend.settings.client())
    assert put.options["delay"] == 60


def test_later_one_of_delay_and_run_after_counts() -> None:
    soon = timezone.now()
    delayed = add.using(run_after=soon).using(delay=60)
    assert (delayed.run_after, delayed.put_delay) == (None, 60)
    assert delayed.using(priority=1).put_delay == 60
    assert delayed.using(run_after=soon).put_delay is None
    with pytest.raises(ValueError, match="mutually exclusive"):
        add.using(run_after=soon, delay=1)
    with pytest.raises(ValueError, match="delay must be"):
        add.using(delay=-1)


@pytest.mark.parametrize("name", ["delay", "apply_async", "send"])
def test_names_of_other_libraries_say_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=r"put it by `task\.enqueue\(\.\.\.\)`"):
        getattr(add, name)
    assert not hasattr(add, "__wrapped__")


def test_immediate_backend_runs_a_delayed_task_at_once() -> None:
    backend = {"BACKEND": "aioqless.contrib.django.ImmediateBackend"}
    with override_settings(TASKS={"default": backend}):
        assert add.using(delay=60).enqueue(1).return_value == 2
