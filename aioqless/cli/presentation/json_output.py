"""What `--json` prints of jobs and workers; docs/command-line.md promises these shapes."""

from __future__ import annotations

from dataclasses import asdict

import msgspec

from aioqless.client.job import JobRecord
from aioqless.client.job.summaries import JobSummary, WorkerSummary
from aioqless.errors import AioqlessError
from aioqless.validation import describe_json_error

MARGIN = 50  # brackets around data, more than any document of these has


def data_text(job: JobRecord) -> str:
    """Return the data as JSON: decrypted if this client has the key, else as stored."""
    try:
        return job.text
    except AioqlessError:
        return job.raw_data


def indent_json(text: str) -> str:
    """Indent JSON, whose numbers stay as they are written; return any other text as it is."""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text


def _data_fields(text: str) -> dict[str, object]:
    """Return data, and why it is text instead if it can't be a part of a JSON document."""
    error = ""
    encoded = text.encode(errors="backslashreplace")
    try:
        msgspec.json.decode(encoded)  # formatting accepts more
        # What is nested as deeply as possible can't be nested in a list.
        msgspec.json.format(b"[" * MARGIN + encoded + b"]" * MARGIN)
    except RecursionError:
        error = "it is nested too deeply"
    except (msgspec.MsgspecError, UnicodeError) as refused:
        error = describe_json_error(encoded, refused)
    if error:
        return {"data": encoded.decode(), "data_error": error}
    return {"data": msgspec.Raw(encoded), "data_error": None}


def job_summary(job: JobRecord) -> dict[str, object]:
    """Return a job of a list."""
    return {
        "jid": job.jid,
        "klass": job.klass,
        "state": job.state,
        "queue": job.queue or None,
        "worker": job.worker or None,
        "priority": job.priority,
        "retries": job.retries,
        "remaining": job.remaining,
        "expires": job.expires or None,
        "tags": job.tags,
        "tracked": job.tracked,
        **_data_fields(data_text(job)),
        "failure": asdict(job.failure) if job.failure else None,
    }


def run_summary(job: JobSummary) -> dict[str, object]:
    """Return the latest time of a job of a list, and its last run as far as it is known."""
    return {
        "time": (job.failed if job.state == "failed" else job.time) or None,
        "last_worker": job.worker or job.last_worker or job.failed_by or None,
        "ran": job.ran,
    }


def job_details(job: JobRecord) -> dict[str, object]:
    """Return a single job, with its history."""
    return {
        **job_summary(job),
        "fence": job.fence,
        "spawned_from": job.spawned_from,
        "expiry": job.expiry,
        "held_back": asdict(job.held_back) if job.held_back else None,
        "context": job.context,
        "progress": asdict(job.last_progress) if job.last_progress else None,
        "dependencies": job.dependencies,
        "dependents": job.dependents,
        "events": job.events,
    }


def worker_summary(worker: WorkerSummary, facts: object) -> dict[str, object]:
    """Return a worker of a list, with its facts and the first few of its jobs."""
    doing = [
        {
            "jid": job.jid,
            "klass": job.klass,
            "queue": job.queue,
            "since": job.time or None,
            "expires": job.expires or None,
        }
        for job in worker.doing
    ]
    return {
        "name": worker.name,
        "alive": worker.alive,
        "queues": worker.queues,
        "jobs": worker.jobs,
        "stalled": worker.stalled,
        "seen": worker.seen or None,
        "facts": facts,
        "doing": doing,
    }
