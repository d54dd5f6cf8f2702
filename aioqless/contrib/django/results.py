"""The result of a task, from its job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from aioqless import Client, Job, JobRecord, JobState
from aioqless.client.generated_jid import generate_jid
from aioqless.client.job.state import FailureReason, HistoryEvent
from aioqless.contrib.django.task import declared_tasks
from aioqless.contrib.django.task_framework import (
    TASK_MAX_PRIORITY,
    TASK_MIN_PRIORITY,
    AnyResult,
    AnyTask,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from aioqless.errors import JobFailed, NoResult

STATUSES = {
    JobState.RUNNING: TaskResultStatus.RUNNING,
    JobState.FAILED: TaskResultStatus.FAILED,
    JobState.COMPLETE: TaskResultStatus.SUCCESSFUL,
}  # all others: ready

# The last line of a traceback names the error; frames and source lines before it are indented.
_ERROR_LINE = re.compile(r"^(?:  \| )?([A-Za-z_][\w.]*)(?:: |$)", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):\n"


def new_result(task: AnyTask, args: Sequence[Any], kwargs: Any, alias: str) -> AnyResult:
    """Return the result of a task that is about to be enqueued.

    Raises:
        TypeError: The arguments aren't JSON.
    """
    return TaskResult(
        task=task,
        id=generate_jid(),
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=list(args),
        kwargs=kwargs,
        backend=alias,
        errors=[],
        worker_ids=[],
    )


async def read_result(client: Client, jid: str, alias: str) -> AnyResult:
    """Read the result of a task.

    Raises:
        TaskResultDoesNotExist: There is no such job, it is no task that this process knows, or its
            result has expired.
    """
    job = await client.jobs.get(jid)
    if job is None or job.klass not in declared_tasks:
        raise TaskResultDoesNotExist(jid)
    task = declared_tasks[job.klass]
    result = result_of(job, task, alias, job.last_queue, job.events)
    if result.status == TaskResultStatus.SUCCESSFUL:
        try:
            value = await client.jobs.result(jid)
        except (NoResult, JobFailed) as error:
            raise TaskResultDoesNotExist(jid) from error
        set_fields(result, _return_value=value)
    return result


def result_of(
    job: Job[Any] | JobRecord,
    task: AnyTask,
    alias: str,
    queue: str,
    events: Sequence[HistoryEvent],
) -> AnyResult:
    """Return the result of a task as its job has it, without the value that it returned.

    Args:
        job: The job.
        task: The task.
        alias: Name of the backend.
        queue: The last queue of the job.
        events: What happened to the job.
    """
    put, popped = _times(events, "put"), _times(events, "popped")
    ended = _times(events, "done", "failed")
    status = STATUSES.get(job.state, TaskResultStatus.READY)
    finished = status in (TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED)
    data: dict[str, Any] = job.data if isinstance(job.data, dict) else {}
    return TaskResult(
        task=_task_of(job, task, queue),
        id=job.jid,
        status=status,
        enqueued_at=_moment(put[0]) if put else None,
        started_at=_moment(popped[0]) if popped else None,
        finished_at=_moment(ended[-1]) if finished and ended else None,
        last_attempted_at=_moment(popped[-1]) if popped else None,
        args=data.get("args") or [],
        kwargs=data.get("kwargs") or {},
        backend=alias,
        errors=[_error_of(job.failure)] if job.failure else [],
        worker_ids=[event["worker"] for event in events if event["what"] == "popped"],
    )


def set_fields(result: AnyResult, **values: object) -> None:
    """Set fields of a result, which is frozen for all but backends."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def _times(events: Sequence[HistoryEvent], *kinds: str) -> list[float]:
    return [event["when"] for event in events if event["what"] in kinds]


def _moment(seconds: float) -> datetime:
    """Return a time as Django's `timezone.now()` does."""
    if settings.USE_TZ:
        return datetime.fromtimestamp(seconds, UTC)
    return datetime.fromtimestamp(seconds)


def _task_of(job: Job[Any] | JobRecord, task: AnyTask, queue: str) -> AnyTask:
    """Return the task as it was enqueued, unless an operator has moved it to where none may be."""
    queues = task.get_backend().queues
    priority = max(TASK_MIN_PRIORITY, min(TASK_MAX_PRIORITY, round(-job.priority)))
    return task.using(
        priority=priority, queue_name=queue if queue in queues or not queues else None
    )


def _error_of(failure: FailureReason) -> TaskError:
    return TaskError(
        exception_class_path=_error_path(failure.traceback), traceback=failure.traceback
    )


def _error_path(message: str) -> str:
    """Return the path of the error class that a traceback ends with.

    Jobs also fail without one, such as by a timeout or since their worker was lost.
    """
    text = message.rpartition(_TRACEBACK)[2] if _TRACEBACK in message else ""
    if "Exception Group Traceback" in message:
        text = message.partition("Exception Group Traceback")[2].partition("\n")[2]
    found = _ERROR_LINE.search(text)
    if found is None:
        return "aioqless.errors.JobFailed"
    return found[1] if "." in found[1] else f"builtins.{found[1]}"
