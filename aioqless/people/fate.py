"""What became of a job that a person had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from aioqless.jobs import Job
from aioqless.people.person import Person, name_of

What: TypeAlias = Literal["yours", "over", "taken", "waiting", "finished", "failed", "gone"]


@dataclass(frozen=True)
class Fate:
    """`yours`: the time isn't over. `over`: it is, but nobody has taken the job, so it may still be finished. `taken`, `finished`,
    `failed`: by whom. `waiting`: for the next who asks. `gone`: cancelled, or completed so long ago that it isn't kept."""

    what: What
    by: str | None = None


def had_by(job: Job, person: Person) -> bool:
    """Whether this session of the person had the job at some time that its history still tells of."""
    return any(event["what"] == "popped" and event.get("worker") == person.worker for event in job.events)


def fate_of(job: Job, person: Person, queue: str, now: float) -> Fate:
    """What became of a job of a queue, as the person sees it."""
    if job.state == "failed":
        return Fate("failed", name_of(job.failure.worker) if job.failure else None)
    if job.state == "complete" or job.queue != queue:
        return Fate("finished", _finisher(job.history, queue))
    if job.worker == person.worker:
        return Fate("yours" if job.expires > now else "over")
    if job.worker:
        return Fate("taken", name_of(job.worker))
    return Fate("waiting")


def _finisher(stages: list[dict[str, Any]], queue: str) -> str | None:
    """Who had the job last when it left the queue."""
    done = [stage["worker"] for stage in stages if stage.get("q") == queue and stage.get("worker")]
    return name_of(done[-1]) if done else None
