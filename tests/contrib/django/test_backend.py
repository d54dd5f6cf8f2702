"""The backend of Django's tasks, by what the interface of Django promises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation
from django.utils import timezone

from aioqless import Client, InvalidData, JobFailed, JobState, Key
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.task import declared_tasks
from aioqless.contrib.django.task_framework import (
    TaskResultDoesNotExist,
    TaskResultStatus,
    task,
    task_backends,
)
from tests.conftest import existing_job
from tests.contrib.django.conftest import MakeBackend, RunTasks
from tests.contrib.django.shop import tasks


def jobs(backend: Backend, read: Callable[[Client], Any]) -> Any:
    """Return what a call of the async client returns."""
    return backend.settings.client().call(read)


def test_enqueued_task_is_a_job_with_its_path_arguments_and_queue(backend: Backend) -> None:
    result = tasks.greet.enqueue("Ann")
    assert (result.status, result.backend, result.args, result.kwargs) == (
        TaskResultStatus.READY,
        "default",
        ["Ann"],
        {},
    )
    assert result.enqueued_at and timezone.now() - result.enqueued_at < timedelta(seconds=30)
    found = jobs(backend, lambda client: client.jobs.get(result.id))
    assert found is not None
    assert (found.klass, found.queue, found.priority, found.data) == (
        "tests.contrib.django.shop.tasks.greet",
        "mail",
        -10,
        {"args": ["Ann"], "kwargs": {}},
    )


def test_result_of_a_task_that_ran_has_its_value_times_and_worker(
    backend: Backend, run_tasks: RunTasks
) -> None:
    result = tasks.add.enqueue(1, b=2)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    run_tasks()
    assert result.status == TaskResultStatus.READY
    result.refresh()
    assert (result.status, result.return_value, result.is_finished) == (
        TaskResultStatus.SUCCESSFUL,
        3,
        True,
    )
    assert tasks.calls == [(1, 2)]
    times = [result.enqueued_at, result.started_at, result.finished_at]
    assert all(isinstance(each, datetime) for each in times)
    assert times == sorted(each for each in times if each)
    assert result.last_attempted_at == result.started_at
    assert (result.attempts, len(result.worker_ids), result.errors) == (1, 1, [])
    again = tasks.add.get_result(result.id)
    assert (again.return_value, again.args, again.kwargs) == (3, [1], {"b": 2})
    assert again == result


def test_coroutine_runs_on_the_loop_and_function_in_a_thread(
    backend: Backend, run_tasks: RunTasks
) -> None:
    async def enqueue() -> str:
        result = await tasks.greet.aenqueue("Ann")
        return result.id

    jid = asyncio.run(enqueue())
    run_tasks()

    async def read() -> Any:
        return (await tasks.greet.aget_result(jid)).return_value

    assert asyncio.run(read()) == "hello Ann"
    ((_, thread),) = tasks.calls
    assert thread is threading.current_thread()


def test_failed_task_has_the_class_and_traceback_of_its_error(
    backend: Backend, run_tasks: RunTasks
) -> None:
    result, chained, bad = (
        tasks.refuse.enqueue("no money"),
        tasks.divide.enqueue(0),
        tasks.return_object.enqueue(),
    )
    run_tasks()
    for each in (result, chained, bad):
        each.refresh()
        assert each.status == TaskResultStatus.FAILED and each.finished_at
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value
    (error,) = result.errors
    assert error.exception_class is tasks.Refused
    assert error.traceback.endswith("Refused: no money\n") and "tasks.py" in error.traceback
    assert chained.errors[0].exception_class is tasks.Refused
    assert bad.errors[0].exception_class is TypeError


def test_larger_priority_runs_first(backend: Backend, run_tasks: RunTasks) -> None:
    for number, priority in enumerate((0, -100, 100)):
        tasks.add.using(priority=priority).enqueue(number)
    waiting = jobs(backend, lambda client: client.queue("default").peek(count=3))
    assert [job.data["args"] for job in waiting] == [[2], [0], [1]]
    task_result = tasks.add.get_result(waiting[0].jid)
    assert task_result.task.priority == 100


def test_run_after_delays_the_task(backend: Backend) -> None:
    later = tasks.add.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(1)
    past = tasks.add.using(run_after=timezone.now() - timedelta(hours=1)).enqueue(2)
    counts = jobs(backend, lambda client: client.queue("default").counts())
    assert (counts.scheduled, counts.waiting) == (1, 1)
    assert tasks.add.get_result(later.id).status == TaskResultStatus.READY
    assert past.status == TaskResultStatus.READY


def test_context_has_the_running_result_and_its_attempt(
    backend: Backend, run_tasks: RunTasks
) -> None:
    result = tasks.attempt.enqueue("word")
    run_tasks()
    result.refresh()
    assert result.return_value == ["word", 1, result.id, "RUNNING", 1]


def test_signals_are_sent_when_a_task_is_enqueued_starts_and_ends(
    backend: Backend, run_tasks: RunTasks, signals: list[tuple[str, str, type]]
) -> None:
    tasks.add.enqueue(1)
    run_tasks()
    tasks.refuse.enqueue("no")
    run_tasks()
    assert signals == [
        ("enqueued", "READY", Backend),
        ("started", "RUNNING", Backend),
        ("finished", "SUCCESSFUL", Backend),
        ("enqueued", "READY", Backend),
        ("started", "RUNNING", Backend),
        ("finished", "FAILED", Backend),
    ]


def test_job_options_of_a_task_retry_it(backend: Backend, run_tasks: RunTasks) -> None:
    result = tasks.fail_twice.enqueue()
    assert jobs(backend, lambda client: client.jobs.get(result.id)).retries == 2
    run_tasks()
    result.refresh()
    assert (result.return_value, result.attempts, result.errors) == (3, 3, [])


def test_job_options_of_the_settings_apply_to_all_tasks(
    make_backend: MakeBackend, run_tasks: RunTasks
) -> None:
    backend = make_backend(job_options={"retries": 7, "unique": Key("one")})
    first, second = tasks.add.enqueue(1), tasks.add.enqueue(2)
    assert first.id == second.id
    assert jobs(backend, lambda client: client.jobs.get(first.id)).retries == 7


def test_unknown_job_option_is_refused_before_anything_is_put(make_backend: MakeBackend) -> None:
    options: Any = {"max_concurrency": 1}
    backend = make_backend(job_options=options)
    with pytest.raises(TypeError, match="@job has no option 'max_concurrency': write limits="):
        tasks.add.enqueue(1)
    assert jobs(backend, lambda client: client.queue("default").length()) == 0


def test_schedule_of_a_task_puts_it_into_its_queue(
    backend: Backend, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "tests.contrib.django.shop.tasks.tick"
    monkeypatch.setitem(declared_tasks, path, tasks.declare_tick())
    run_tasks()
    (recurring,) = jobs(backend, lambda client: client.recurring.page("mail"))
    assert (recurring.klass, recurring.interval) == (path, 3600)
    backend.settings.client().put(path, queue="mail")  # as a schedule does, without data
    run_tasks()
    assert tasks.calls == ["tick"]


def test_arguments_that_are_no_json_are_refused(backend: Backend) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.add.enqueue(object())  # type: ignore[arg-type]  # it is refused
    with pytest.raises(InvalidData, match="nan"):
        tasks.add.enqueue(float("nan"))  # type: ignore[arg-type]  # it is refused
    assert jobs(backend, lambda client: client.queues()) == []


def test_invalid_tasks_are_refused(backend: Backend) -> None:
    for changes, why in (
        ({"queue_name": "unknown"}, "not valid"),
        ({"priority": 101}, "priority"),
        ({"run_after": datetime(2030, 1, 1)}, "aware"),
    ):
        with pytest.raises(Exception, match=why):
            tasks.add.using(**changes)
    with pytest.raises(Exception, match="module level"):
        task(lambda: None)


def test_unknown_results_and_results_of_other_tasks_are_refused(backend: Backend) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result("unknown")
    foreign = backend.settings.client().put("NoTask")
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(foreign)
    result = tasks.add.enqueue(1)
    with pytest.raises(Exception, match="match"):
        tasks.greet.get_result(result.id)


def test_enqueue_on_an_event_loop_names_aenqueue(backend: Backend) -> None:
    async def enqueue() -> None:
        tasks.add.enqueue(1)

    with pytest.raises(SynchronousOnlyOperation, match="aenqueue"):
        asyncio.run(enqueue())


def test_wrong_options_are_refused(make_backend: MakeBackend) -> None:
    for options, why in (
        ({"redis": "x"}, "no option 'redis'"),
        ({"enqueue": "later"}, "must be one of now, on_commit, outbox"),
        ({"url": "http://x"}, "redis://"),
    ):
        with pytest.raises(ImproperlyConfigured, match=why):
            make_backend(**options)
    make_backend()


def test_wrong_job_options_stop_the_worker(make_backend: MakeBackend, run_tasks: RunTasks) -> None:
    make_backend(job_options={"retrys": 3})
    with pytest.raises(ImproperlyConfigured, match="@job has no option 'retrys'"):
        run_tasks()
    make_backend(job_options={"executor": "process"})
    with pytest.raises(ImproperlyConfigured, match="executor"):
        run_tasks()


def test_threads_share_one_client(backend: Backend) -> None:
    def client_of_thread() -> object:
        other = task_backends["default"]
        assert isinstance(other, Backend) and other is not backend
        return other.settings.client()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(client_of_thread).result() is backend.settings.client()


def test_operator_may_move_a_task_to_a_queue_that_the_settings_do_not_name(
    backend: Backend,
) -> None:
    result = tasks.add.enqueue(1)

    async def move(client: Client) -> None:
        job = await existing_job(client, result.id)
        await job.move("elsewhere")

    jobs(backend, move)
    assert tasks.add.get_result(result.id).task.queue_name == "default"
    assert jobs(backend, lambda client: client.jobs.get(result.id)).state == JobState.WAITING


def test_failed_task_is_logged_by_django_with_its_exception(
    backend: Backend, run_tasks: RunTasks, caplog: pytest.LogCaptureFixture
) -> None:
    tasks.refuse.enqueue("no money")
    with caplog.at_level("INFO"):
        run_tasks()
    (failed,) = [each for each in caplog.records if "state=FAILED" in each.getMessage()]
    assert failed.exc_info and isinstance(failed.exc_info[1], Exception)
    assert "no money" in str(failed.exc_info[1])


def test_task_that_exits_is_logged_by_django_with_an_exception(
    backend: Backend, run_tasks: RunTasks, caplog: pytest.LogCaptureFixture
) -> None:
    tasks.exit_with.enqueue(3)
    with caplog.at_level("INFO"):
        run_tasks()
    (failed,) = [each for each in caplog.records if "state=FAILED" in each.getMessage()]
    assert failed.exc_info and isinstance(failed.exc_info[1], JobFailed)
    assert "SystemExit: 3" in str(failed.exc_info[1])


async def test_data_that_is_no_task_fails_as_invalid(
    make_backend: MakeBackend, run_tasks: RunTasks, client: Client
) -> None:
    make_backend()
    jid = await client.queue("default").put(tasks.add.module_path, [1, 2])
    await sync_to_async(run_tasks)()
    job = await client.jobs.get(jid)
    assert job and job.failure and job.failure.group == "default-InvalidData"
