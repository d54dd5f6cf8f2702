"""Django: a backend for its tasks, a worker command, an outbox of the ORM, and an admin page.

Needs `aioqless[django]`, and `aioqless.contrib.django` in INSTALLED_APPS.

apps.py            the application
backend.py         Backend: what TASKS names; puts tasks and returns their results
immediate.py       ImmediateBackend: runs tasks when they are enqueued
options.py         the backend's OPTIONS
task_framework.py  the names of Django 6's `django.tasks`, or of the package django-tasks
task.py            Task, with options of aioqless, and the registry of all tasks
arguments.py       checks the arguments of tasks
results.py         the result of a task, from its job
handlers.py        the handlers of tasks, and what a worker calls before and after them
connections.py     closes database connections after each run
outbox.py          puts jobs when a transaction commits: `outbox.put`, and the relay
models.py          the outbox' table, and the queues of the admin
admin.py           lists queues and the outbox
testing.py         runs the tasks of a test; a mixin for Django's test cases
fixtures.py        a fixture for pytest
management/        the commands aioqless_worker and aioqless
"""

from aioqless.errors import require_extra

with require_extra("django"):
    from aioqless.contrib.django.backend import Backend
    from aioqless.contrib.django.immediate import ImmediateBackend
    from aioqless.contrib.django.task import Task

__all__ = ["Backend", "ImmediateBackend", "Task"]
