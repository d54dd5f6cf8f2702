"""Task: a task of Django with options of aioqless, and the registry of all tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Self

from django.utils.module_loading import autodiscover_modules

from aioqless import validation
from aioqless.contrib.django.task_framework import AnyTask
from aioqless.handlers import JobOptions
from aioqless.hints import suggest_put
from aioqless.validation import Seconds

# The tasks of imported modules by path, which is their klass. Nothing is imported because Redis
# named it: a worker runs the tasks that the project has imported.
declared_tasks: dict[str, Task] = {}


@suggest_put(
    "`task.enqueue(...)`, or with options by `task.using(delay=60).enqueue(...)`", what="it"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Task(AnyTask):
    """What `@task` makes of a function for this backend.

    Attributes:
        job_options: Options of `@aioqless.job` for its jobs, such as `retry_on` and `timeout`:
            `@task(job_options={"timeout": 60})`. They override those of the settings.
        put_delay: Seconds after which its jobs may run, from when they are put; `using(delay=...)`.
    """

    job_options: JobOptions = field(default_factory=JobOptions, hash=False)
    put_delay: float | None = None

    def __post_init__(self) -> None:
        AnyTask.__post_init__(self)  # dataclasses with slots have no super()
        declared_tasks.setdefault(self.module_path, self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        delay: Seconds | None = None,
    ) -> Self:
        """Return the same task with other options: `confirm.using(delay=60).enqueue(1042)`.

        Args:
            priority: Larger runs sooner.
            queue_name: Name of the queue.
            run_after: When it may run.
            backend: Alias of the backend.
            delay: In how many seconds it may run, instead of `run_after`.

        Raises:
            ValueError: The delay is negative, or given together with `run_after`.
        """
        task = AnyTask.using(
            self, priority=priority, queue_name=queue_name, run_after=run_after, backend=backend
        )
        if delay is None:
            return task if run_after is None else replace(task, put_delay=None)
        if run_after is not None:
            raise ValueError("delay and run_after are mutually exclusive")
        return replace(task, put_delay=validation.check_seconds("delay", delay), run_after=None)


@cache
def import_task_modules() -> None:
    """Import the modules `tasks` of all applications, once."""
    autodiscover_modules("tasks")
