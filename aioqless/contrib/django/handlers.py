"""The handlers of Django's tasks, and what a worker calls before and after them."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from aioqless import (
    AioqlessError,
    Client,
    Handler,
    Inject,
    Job,
    JobFailed,
    job,
    middleware,
    on_finish,
)
from aioqless.client import REDIS_UNAVAILABLE
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.connections import (
    hook_with_connections,
    own_connections,
    with_connections,
)
from aioqless.contrib.django.options import RESULT_TTL, BackendOptions
from aioqless.contrib.django.results import read_result, result_of, set_fields
from aioqless.contrib.django.task import Task, declared_tasks, import_task_modules
from aioqless.contrib.django.task_framework import (
    AnyResult,
    BaseTaskBackend,
    TaskContext,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from aioqless.handlers import (
    ENDS,
    CallNext,
    Hook,
    JobOptions,
    Middleware,
    Resource,
    Source,
    declared,
    lifespan,
)

DETAILS_TIMEOUT = 5.0  # seconds

_running: ContextVar[AnyResult] = ContextVar("aioqless_django_running")


def worker_sources(
    backend: Backend, modules: Sequence[ModuleType] = (), *, relay: bool = True
) -> list[Source]:
    """Return what a worker of a backend runs.

    That is all tasks that the project has imported, after the modules `tasks` of its applications,
    and the handlers, middleware, hooks and resources of these modules and of others.

    Args:
        backend: The backend.
        modules: The others.
        relay: Whether it puts the jobs of the outbox, if the backend has one.

    Raises:
        ImproperlyConfigured: There is neither a task nor a handler.
    """
    import_task_modules()
    sources = [
        *(sys.modules.get(f"{app.name}.tasks") for app in apps.get_app_configs()),
        *modules,
    ]
    found: list[Source] = [each for each in sources if each is not None]
    handlers: list[Source] = [
        *(make_handler(task, backend.settings, type(backend)) for task in declared_tasks.values()),
        *map(with_connections, declared(Handler, found)),
    ]
    if not handlers:
        raise ImproperlyConfigured(
            "there is no task: declare one by @task in a module `tasks` of an installed "
            "application, or name the module that has it"
        )
    return [
        *handlers,
        *declared(Resource, found),
        *declared(Middleware, found),
        *map(hook_with_connections, declared(Hook, found)),
        *_around_tasks(backend),
        *([_relay_of(backend)] if relay and backend.settings.enqueue == "outbox" else []),
    ]


def make_handler(
    task: Task, settings: BackendOptions, sender: type[BaseTaskBackend]
) -> Handler[...]:
    """Return the handler of a task's jobs.

    Args:
        task: The task.
        settings: The options of its backend.
        sender: The class of its backend, which sends the signals.

    Raises:
        ImproperlyConfigured: Its job options are wrong.
    """
    options: JobOptions = {"result_ttl": RESULT_TTL}
    options.update(settings.job_options)
    options.update(task.job_options)
    options["klass"] = task.module_path
    options["queue"], options["priority"] = task.queue_name, -task.priority  # of a schedule
    if options.get("executor"):
        raise ImproperlyConfigured(
            f"{task.module_path}: job_options can't have an executor: tasks run in threads, or on "
            "the loop if they are coroutines"
        )
    try:
        return with_connections(job(**options)(_function_of(task, sender)))
    except (TypeError, ValueError) as error:
        raise ImproperlyConfigured(f"job_options of {task.module_path}: {error}") from None


def _function_of(task: Task, sender: type[BaseTaskBackend]) -> Any:
    """Return the function that runs a task: a coroutine function if the task is one."""

    def arguments(result: AnyResult, args: list[Any]) -> list[Any]:
        return [TaskContext(task_result=result), *args] if task.takes_context else args

    if inspect.iscoroutinefunction(task.func):

        async def perform_on_loop(
            _job: Job, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None
        ) -> Any:
            result = _running.get()
            await task_started.asend(sender, task_result=result)
            return normalize_json(await task.func(*arguments(result, args or []), **(kwargs or {})))

        return perform_on_loop

    def perform(
        _job: Job, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = _running.get()
        task_started.send(sender, task_result=result)
        return normalize_json(task.func(*arguments(result, args or []), **(kwargs or {})))

    return perform


def _around_tasks(backend: Backend) -> list[Source]:
    """Return the middleware that prepares a task's result, and the hook that reports its end."""
    errors: dict[tuple[str, int], Exception] = {}  # by jid and fence, until the run has ended

    @middleware
    async def prepare(job: Job[Any], call: CallNext, client: Client = Inject) -> Any:
        if task := declared_tasks.get(job.klass):
            details = None
            # The run needs no details: it continues without them if Redis doesn't answer.
            with suppress(*REDIS_UNAVAILABLE, AioqlessError, TimeoutError):
                async with asyncio.timeout(DETAILS_TIMEOUT):
                    details = await client.jobs.get(job.jid)
            events = details.events if details else []
            result = result_of(job, task, backend.alias, job.queue, events)
            set_fields(result, status=TaskResultStatus.RUNNING)
            _running.set(result)
        try:
            return await call()
        except Exception as error:
            if job.klass in declared_tasks:
                errors[job.jid, job.fence] = error
            raise

    @on_finish(*ENDS)
    async def report(job: Job[Any], end: str, client: Client = Inject, **fields: Any) -> None:
        error = errors.pop((job.jid, job.fence), None)
        if job.klass not in declared_tasks or end not in ("job.completed", "job.failed"):
            return
        with suppress(TaskResultDoesNotExist):
            result = await read_result(client, job.jid, backend.alias)
            async with own_connections():
                if result.status != TaskResultStatus.FAILED:
                    await task_finished.asend(type(backend), task_result=result)
                    return
                if error is None:  # as after a timeout
                    reason = result.errors[0].traceback if result.errors else "it has failed"
                    error = JobFailed(job.jid, str(fields.get("group", "")), reason)
                try:  # Django's receiver logs the exception that is handled
                    raise error
                except type(error):  # which a thread is given, unlike the tasks of `asend`
                    await sync_to_async(task_finished.send)(type(backend), task_result=result)

    return [prepare, report]


def _relay_of(backend: Backend) -> Resource:
    """Return the background task that puts the jobs of the outbox."""
    from aioqless.contrib.django.outbox import Relay  # imports models, which need Django set up

    @lifespan
    async def relay_outbox(client: Client = Inject) -> AsyncIterator[None]:
        relay = Relay(client, using=backend.settings.database)
        async with asyncio.TaskGroup() as group:  # the worker doesn't outlive its relay
            group.create_task(relay.run(), name="aioqless outbox")
            yield
            relay.stop()

    return relay_outbox
