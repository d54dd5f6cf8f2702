"""What became of a job that a person had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from aioqless.client.job import Job
from aioqless.contrib.human_tasks.person import Person, name_of

What: TypeAlias = Literal["yours", "over", "taken", "waiting", "finished", "failed", "gone"]


@dataclass(frozen=True)
class Fate:
    """`yours`: the time isn't over. `over`: it is, but nobody has taken the job, so it may still be
    finished. `taken`, `finished`, `failed`: by whom. `waiting`: for the next who asks. `gone`:
    cancelled, moved, or completed so long ago that it isn't kept."""

    what: What
    by: str | None = None


def had_by(job: Job, person: Person) -> bool:
    """Whether this session of the person had the job at some time that its history still tells
    of."""
    return any(
        {"popped": event.get("worker"), "handed-over": event.get("to")}.get(event["what"])
        == person.worker
        for event in job.events
    )


def fate_of(job: Job, person: Person, queue: str, now: float) -> Fate:
    """What became of a job of a queue, as the person sees it."""
    if job.state == "failed":
        return Fate("failed", name_of(job.failure.worker) if job.failure else None)
    if job.state == "complete" or job.queue != queue:
        return _end_of([stage for stage in job.history if stage.get("q") == queue])
    if job.state != "running":
        return Fate("waiting")
    if job.worker == person.worker:
        return Fate("yours" if job.expires > now else "over")
    return Fate("taken", name_of(job.worker))


def _end_of(stages: list[dict[str, Any]]) -> Fate:
    """How the job left the queue: somebody was done with it, or an operator moved it."""
    if not stages or "done" not in stages[-1]:
        return Fate("gone")
    worker = stages[-1].get("worker")
    return Fate("finished", name_of(worker) if worker else None)
