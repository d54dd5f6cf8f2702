"""What a job is in `--json`. These shapes are promised: docs/command-line.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from aioqless.cli.presentation.completion import failed_lately
from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.client.job.summaries import WorkerGlance
from aioqless.errors import AioqlessError

SHORTEST = 4  # characters of a jid's beginning


def text_of(job: Job) -> str:
    """The data as JSON: out of their seal where this client has the key to it, else as they are
    stored."""
    try:
        return job.text
    except AioqlessError:
        return job.raw_data


def listed(job: Job) -> dict[str, Any]:
    """A job in a list."""
    return {
        "jid": job.jid,
        "klass": job.klass,
        "state": str(job.state),
        "queue": job.queue or None,
        "worker": job.worker or None,
        "priority": job.priority,
        "retries": job.retries,
        "remaining": job.remaining,
        "expires": job.expires or None,
        "tags": job.tags,
        "tracked": job.tracked,
        "data": msgspec.Raw(text_of(job).encode()),
        "failure": asdict(job.failure) if job.failure else None,
    }


def whole(job: Job) -> dict[str, Any]:
    """A job by itself: with its history."""
    progressed = asdict(job.progressed) if job.progressed else None
    return {
        **listed(job),
        "fence": job.fence,
        "spawned_from": job.spawned_from,
        "start_by": job.start_by,
        "held_back": asdict(job.held_back) if job.held_back else None,
        "context": job.context,
        "progress": progressed,
        "dependencies": job.dependencies,
        "dependents": job.dependents,
        "events": job.events,
    }


def summarized(worker: WorkerGlance) -> dict[str, Any]:
    """A worker in a list, with the first few of its jobs."""
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
        "jobs": worker.jobs,
        "stalled": worker.stalled,
        "seen": worker.seen or None,
        "doing": doing,
    }


async def found(client: Client, jid: str) -> Job:
    """The job of a jid, or of the beginning of one that failed lately. Raises AioqlessError when
    there is none, or several."""
    if job := await client.jobs.get(jid):
        return job
    if len(jid) < SHORTEST:
        raise AioqlessError(f"there is no job {jid!r}")
    jids = [each for each in await failed_lately(client) if each.startswith(jid)]
    if len(jids) > 1:
        raise AioqlessError(
            f"several jobs begin with {jid!r}: {', '.join(jids[:5])}{', …' if len(jids) > 5 else ''}"
        )
    job = await client.jobs.get(jids[0]) if jids else None
    if job is None:
        raise AioqlessError(f"there is no job {jid!r}, and none that failed lately begins so")
    return job


async def states_of(client: Client, jids: Sequence[str]) -> dict[str, str]:
    """The state of each job that there is."""
    return {job.jid: str(job.state) for job in await client.jobs.multiget(*jids)} if jids else {}
