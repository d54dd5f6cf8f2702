"""Backend: what TASKS in Django's settings names; puts tasks and returns their results."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone
from django.utils.asyncio import async_unsafe

from aioqless import NewJob, validation
from aioqless.client import job_data
from aioqless.client.new_job import encode_job
from aioqless.client.put_options import PutOptions
from aioqless.contrib.django.arguments import check_arguments
from aioqless.contrib.django.options import BackendOptions
from aioqless.contrib.django.results import new_result, read_result, set_fields
from aioqless.contrib.django.task import Task, import_task_modules
from aioqless.contrib.django.task_framework import (
    FRAMEWORK_APP,
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    task_backends,
    task_enqueued,
)
from aioqless.handlers.job_options import JOB

APP = "aioqless.contrib.django"
ASYNC_HINT = (
    "enqueue() and get_result() would block the event loop: await aenqueue(), aget_result()"
)


class Backend(BaseTaskBackend):
    """A backend of Django's tasks: `"BACKEND": "aioqless.contrib.django.Backend"`.

    Each task is a job: its path is the klass, its result's id the jid, and `queue_name` the queue.
    """

    task_class = Task  # type: ignore[assignment]  # ours has no type parameters, as Django 6's
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.settings = BackendOptions.read(alias, self.options)

    @async_unsafe(ASYNC_HINT)
    def enqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyResult:
        """Put a task now or at the commit, as `OPTIONS["enqueue"]` says.

        Raises:
            AioqlessError: Redis refuses the job, or has no room.
            ConnectionError: Redis doesn't answer; that of redis-py.
            TypeError: The arguments aren't JSON, or the function doesn't take them.
        """
        self.validate_task(task)
        result = new_result(task, args, kwargs, self.alias)
        check_arguments(task, result.args, result.kwargs)
        using = self.settings.database
        match self.settings.enqueue:
            case "outbox":
                from aioqless.contrib.django import outbox  # imports models

                outbox.put(self._job_of(task, result), queue=task.queue_name, using=using)
                self._report_enqueued(result)
            case "on_commit":
                encode_job(self._job_of(task, result), job_data.MAX_BYTES)  # refuses bad ones now
                transaction.on_commit(partial(self._put, task, result), using=using)
            case "now":
                self._put(task, result)
        return result

    async def aenqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyResult:
        """Put a task, as `enqueue` does."""
        own_thread = self.settings.enqueue == "now"  # transactions belong to Django's thread
        put = sync_to_async(self.enqueue, thread_sensitive=not own_thread)
        return await put(task, args, kwargs)

    @async_unsafe(ASYNC_HINT)
    def get_result(self, result_id: str) -> AnyResult:
        """Read the result of a task.

        Completed jobs are kept for a week, and what they returned for a day: the configuration
        `jobs-history`, and `result_ttl` of the job options.

        Raises:
            TaskResultDoesNotExist: There is no such task, or its result has expired.
        """
        import_task_modules()  # the task may be one that this process hasn't used yet
        return self.settings.client().call(
            lambda client: read_result(client, result_id, self.alias)
        )

    async def aget_result(self, result_id: str) -> AnyResult:
        """Read the result of a task, as `get_result` does."""
        return await sync_to_async(self.get_result, thread_sensitive=False)(result_id)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Check the settings, for `manage.py check`."""
        yield from super().check(**kwargs)
        for app in (FRAMEWORK_APP, APP):
            if app and not apps.is_installed(app):
                yield checks.Error(
                    f"TASKS[{self.alias!r}] needs {app!r}",
                    hint=f"Add {app!r} to INSTALLED_APPS.",
                    id="aioqless.E001",
                )
        for queue in sorted(self.queues):
            try:
                validation.check_name("queue", queue)
            except (TypeError, ValueError) as error:
                yield checks.Error(f"QUEUES of TASKS[{self.alias!r}]: {error}", id="aioqless.E002")
        others = [
            alias
            for alias in task_backends
            if alias < self.alias
            and isinstance(other := task_backends[alias], Backend)
            and other.settings.enqueue == self.settings.enqueue == "outbox"
        ]
        if others:
            yield checks.Error(
                f"TASKS[{self.alias!r}] and TASKS[{others[0]!r}] share the table of the outbox, "
                "so the jobs of one could be put by the other",
                hint='Set "enqueue": "outbox" in one of them only.',
                id="aioqless.E003",
            )

    def _put(self, task: AnyTask, result: AnyResult) -> None:
        jid = self.settings.client().put(self._job_of(task, result), queue=task.queue_name)
        set_fields(result, id=jid)  # that of another job, if this has a unique key
        self._report_enqueued(result)

    def _report_enqueued(self, result: AnyResult) -> None:
        set_fields(result, enqueued_at=timezone.now())
        task_enqueued.send(type(self), task_result=result)

    def _job_of(self, task: AnyTask, result: AnyResult) -> NewJob:
        declared = {**self.settings.job_options, **getattr(task, "job_options", {})}
        JOB.refuse_unknown(declared)
        known = PutOptions.__annotations__
        options = cast(PutOptions, {name: each for name, each in declared.items() if name in known})
        options["jid"] = result.id
        options["priority"] = -task.priority  # Django's higher ones run sooner
        if task.run_after is not None:
            aware = timezone.is_aware(task.run_after)  # it isn't with USE_TZ = False
            options["at"] = task.run_after if aware else timezone.make_aware(task.run_after)
        if isinstance(task, Task) and task.put_delay is not None:
            options["delay"] = task.put_delay
        return NewJob(task.module_path, {"args": result.args, "kwargs": result.kwargs}, **options)


def find_backend(alias: str) -> Backend:
    """Return a backend of TASKS.

    Raises:
        ImproperlyConfigured: There is none of this name, or it is another kind of backend.
    """
    backend = task_backends[alias]
    if not isinstance(backend, Backend):
        raise ImproperlyConfigured(
            f"TASKS[{alias!r}] must have aioqless.contrib.django.Backend as its BACKEND"
        )
    return backend
