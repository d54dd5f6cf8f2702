"""Django's task framework: `django.tasks` of Django 6, else the package django-tasks."""

from typing import TYPE_CHECKING, Any, TypeAlias

import django

if TYPE_CHECKING or django.VERSION < (6,):
    from django_tasks import task, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import (
        TASK_MAX_PRIORITY,
        TASK_MIN_PRIORITY,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )
    from django_tasks.base import Task as BaseTask
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    FRAMEWORK_APP = "django_tasks"  # must be in INSTALLED_APPS
else:
    from django.tasks import task, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import (
        TASK_MAX_PRIORITY,
        TASK_MIN_PRIORITY,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )
    from django.tasks.base import Task as BaseTask
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    FRAMEWORK_APP = None

# Those of Django 6 have no type parameters.
if TYPE_CHECKING:
    AnyTask: TypeAlias = BaseTask[..., Any]
    AnyResult: TypeAlias = TaskResult[Any]
else:
    AnyTask, AnyResult = BaseTask, TaskResult

__all__ = [
    "FRAMEWORK_APP",
    "TASK_MAX_PRIORITY",
    "TASK_MIN_PRIORITY",
    "AnyResult",
    "AnyTask",
    "BaseTaskBackend",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "normalize_json",
    "task",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
