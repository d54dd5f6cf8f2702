"""ImmediateBackend: runs tasks when they are enqueued, for tests and for development."""

from __future__ import annotations

import secrets
import traceback
from typing import Any

from django.utils import timezone
from django.utils.asyncio import async_unsafe

from aioqless import Fail, Handler, Retry, Snooze, Throttled
from aioqless.contrib.django.arguments import check_arguments
from aioqless.contrib.django.backend import ASYNC_HINT
from aioqless.contrib.django.handlers import make_handler
from aioqless.contrib.django.options import BackendOptions
from aioqless.contrib.django.results import new_result, set_fields
from aioqless.contrib.django.task import Task
from aioqless.contrib.django.task_framework import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    TaskContext,
    TaskError,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
    task_finished,
    task_started,
)
from aioqless.handlers.retry_policy import NEVER
from aioqless.lua import constant

AGAIN = (Retry, Snooze, Throttled)  # what a task raises to be run again


class ImmediateBackend(BaseTaskBackend):
    """Runs tasks without Redis: `"BACKEND": "aioqless.contrib.django.ImmediateBackend"`.

    A task runs at once, on the thread that enqueues it, so that it sees that thread's transaction.
    One with `run_after` or a delay does, too, and one that is retried runs again at once. It takes
    the OPTIONS of `Backend`, and `job_options` of tasks: `retries`, `retry_on` and `dont_retry_on`
    have an effect. Its results are those of Django's own `ImmediateBackend`.
    """

    task_class = Task  # type: ignore[assignment]  # ours has no type parameters, as Django 6's
    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.settings = BackendOptions.read(alias, self.options)
        self._worker = secrets.token_hex(16)

    @async_unsafe(ASYNC_HINT)
    def enqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyResult:
        """Run a task; what it raises is in the result.

        Raises:
            ImproperlyConfigured: Its job options are wrong.
            TypeError: The arguments aren't JSON, or the function doesn't take them.
        """
        self.validate_task(task)
        assert isinstance(task, Task)
        handler = make_handler(task, self.settings, type(self))
        result = new_result(task, args, kwargs, self.alias)
        check_arguments(task, result.args, result.kwargs)
        set_fields(result, enqueued_at=timezone.now())
        task_enqueued.send(type(self), task_result=result)
        retries = handler.put_defaults.get("retries", constant("DEFAULT_RETRIES"))
        for used in range(int(retries) + 1):
            try:
                self._attempt(task, result)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a task raises, as Django's own
                if used < retries and _is_retried(error, used, handler):
                    continue
                self._finish(result, TaskResultStatus.FAILED, error)
            else:
                self._finish(result, TaskResultStatus.SUCCESSFUL)
            break
        return result

    def _attempt(self, task: Task, result: AnyResult) -> None:
        now = timezone.now()
        set_fields(
            result,
            status=TaskResultStatus.RUNNING,
            started_at=result.started_at or now,
            last_attempted_at=now,
        )
        result.worker_ids.append(self._worker)
        task_started.send(type(self), task_result=result)
        context = [TaskContext(task_result=result)] if task.takes_context else []
        value = task.call(*context, *result.args, **result.kwargs)
        set_fields(result, _return_value=normalize_json(value))

    def _finish(
        self, result: AnyResult, status: TaskResultStatus, error: BaseException | None = None
    ) -> None:
        if error is not None:
            kind = type(error)
            path = f"{kind.__module__}.{kind.__qualname__}"
            text = "".join(traceback.format_exception(error))
            result.errors.append(TaskError(exception_class_path=path, traceback=text))
        set_fields(result, finished_at=timezone.now(), status=status)
        task_finished.send(type(self), task_result=result)


def _is_retried(error: BaseException, used: int, handler: Handler[...]) -> bool:
    if isinstance(error, Fail):
        return False
    return isinstance(error, AGAIN) or (handler.retry or NEVER).delay(error, used) is not None
