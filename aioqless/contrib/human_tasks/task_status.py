"""What became of a job that a person held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from aioqless.client.job import JobRecord
from aioqless.contrib.human_tasks.person import Person, name_of

What: TypeAlias = Literal["yours", "over", "taken", "waiting", "finished", "failed", "gone"]


@dataclass(frozen=True)
class TaskStatus:
    """What became of a job, as a person who held it sees it.

    yours: the reservation has not expired. over: it has, but the job was not taken over, so that it
    may still be finished. taken, finished, failed: `by` says by whom. waiting: for the next
    caller. gone: canceled, moved, or completed so long ago that it is not kept.
    """

    what: What
    by: str | None = None


def was_held_by(job: JobRecord, person: Person) -> bool:
    """Return whether the job's history says that this session held it."""
    return any(
        {"popped": event.get("worker"), "handed-over": event.get("to")}.get(event["what"])
        == person.worker
        for event in job.events
    )


def status_of(job: JobRecord, person: Person, queue: str, now: float) -> TaskStatus:
    """Return what became of a job of a queue, as the person sees it."""
    if job.state == "failed":
        return TaskStatus("failed", name_of(job.failure.worker) if job.failure else None)
    if job.state == "complete" or job.queue != queue:
        return _status_after([stage for stage in job.history if stage.get("q") == queue])
    if job.state != "running":
        return TaskStatus("waiting")
    if job.worker == person.worker:
        return TaskStatus("yours" if job.expires > now else "over")
    return TaskStatus("taken", name_of(job.worker))


def _status_after(stages: Sequence[Mapping[str, Any]]) -> TaskStatus:
    """Return how a job left the queue: a person finished it, or an operator moved it."""
    if not stages or "done" not in stages[-1]:
        return TaskStatus("gone")
    worker = stages[-1].get("worker")
    return TaskStatus("finished", name_of(worker) if worker else None)
