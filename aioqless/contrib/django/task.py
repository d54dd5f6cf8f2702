"""Task: a task of Django with options of aioqless, and the registry of all tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from django.utils.module_loading import autodiscover_modules

from aioqless.contrib.django.task_framework import AnyTask
from aioqless.handlers import JobOptions

# The tasks of imported modules by path, which is their klass. Nothing is imported because Redis
# named it: a worker runs the tasks that the project has imported.
declared_tasks: dict[str, Task] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(AnyTask):
    """What `@task` makes of a function for this backend.

    Attributes:
        job_options: Options of `@aioqless.job` for its jobs, such as `retry_on` and `timeout`:
            `@task(job_options={"timeout": 60})`. They override those of the settings.
    """

    job_options: JobOptions = field(default_factory=JobOptions, hash=False)

    def __post_init__(self) -> None:
        AnyTask.__post_init__(self)  # dataclasses with slots have no super()
        declared_tasks.setdefault(self.module_path, self)


@cache
def import_task_modules() -> None:
    """Import the modules `tasks` of all applications, once."""
    autodiscover_modules("tasks")
