"""Jobs as they are read from Redis, without Redis."""

from __future__ import annotations

from typing import Any

from aioqless import Job, JobRecord
from aioqless.client.job import JobRun
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import decode_record
from aioqless.handlers import Handler, Handlers, MiddlewareStack
from aioqless.worker.runner import perform
from aioqless.worker.running_jobs import Run
from aioqless.worker.thread_pool import ThreadPool


def record_of(**fields: Any) -> dict[str, Any]:
    """Return a job's record, with defaults for the fields that are not given."""
    return {
        "jid": "a", "klass": "Greet", "queue": "mail", "state": "running", "worker": "ann",
        "priority": 0, "tags": [], "retries": 5,
        "remaining": 5, "expires": 60, "tracked": False, "failure": {}, "spawned_from_jid": False,
        "fence": 1, "data": "null", **fields,
    }  # fmt: skip


def job_of(**fields: Any) -> Job[Any]:
    """Return a job that runs in the queue `mail`, without a connection."""
    return Job(run_of(**fields))


def run_of(**fields: Any) -> JobRun:
    """Return the run of a job, without a connection."""
    return JobRun(JobBackend.offline(), decode_record(record_of(**fields)))


def read_job_of(**fields: Any) -> JobRecord:
    """Return a job as it is read, without a connection."""
    return JobRecord(JobBackend.offline(), decode_record(record_of(**fields)))


async def performed(handler: Handler, data: str = "null", **fields: Any) -> Any:
    """Return the outcome of a job with this data."""
    return await perform_run(handler, run_of(klass=handler.klass, data=data, **fields))


async def perform_run(handler: Handler, job_run: JobRun) -> Any:
    """Let a handler perform a run; return its result."""
    run = Run(job_run, started=0, lock=60, deadline=60)
    return await perform(run, Handlers([handler]), MiddlewareStack(), ThreadPool())
