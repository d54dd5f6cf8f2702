"""Types of requests and responses, for validation and for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from aioqless import validation
from aioqless.client.job import Job
from aioqless.contrib.human_tasks.reservation import Reservation
from aioqless.contrib.human_tasks.task_status import What

Name = Annotated[str, Meta(min_length=1, max_length=64, description="A person's name, without @.")]
Jid = Annotated[str, Meta(min_length=1, max_length=512)]
Fence = Annotated[
    int, Meta(ge=1, le=9_007_199_254_740_991, description="The number of the reservation.")
]
Limit = Annotated[
    float,
    Meta(gt=0, le=86_400, description="Seconds; no more than the queue's `longest` are given."),
]
Reason = Annotated[str, Meta(min_length=1, max_length=4000)]


class Reserve(msgspec.Struct, forbid_unknown_fields=True):
    """The time limit, and whether skipped jobs are offered again."""

    limit: Limit | None = None
    again: bool = False


class ReservationKey(msgspec.Struct, forbid_unknown_fields=True):
    """Identifies a reservation."""

    jid: Jid
    fence: Fence


class Extend(ReservationKey):
    """The new time limit, from now."""

    limit: Limit | None = None


class Finish(ReservationKey):
    """The answer: any JSON."""

    answer: Any


class Reject(ReservationKey):
    """Why the job is rejected."""

    reason: Reason


class HandOver(ReservationKey):
    """The other person, and the time limit for that person to reserve the job."""

    to: Name
    limit: Limit | None = None


class StatusQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The job."""

    jid: Jid


class Task(msgspec.Struct):
    """A reserved job, with the seconds left. Data that is not JSON is given as a string."""

    jid: str
    fence: int
    klass: str
    data: Any
    tags: list[str]
    left: float


class Offer(msgspec.Struct):
    """The reserved job, and the number of jobs that were passed over as skipped."""

    task: Task | None
    skipped: int


class Extended(msgspec.Struct):
    """The seconds left."""

    left: float


class TaskStatus(msgspec.Struct):
    """The state of a job after its reservation, and its holder. over: expired, not taken over."""

    what: What
    by: str | None


class Counts(msgspec.Struct):
    """Counts of a task queue, and the limits of its reservations in seconds."""

    name: str
    waiting: int
    reserved: int
    paused: bool
    limit: float
    longest: float


def task_of(reservation: Reservation) -> Task:
    """Return the response for a reservation."""
    job = reservation.job
    tags = [validation.to_text(tag) for tag in job.tags]
    return Task(
        job.jid,
        reservation.fence,
        validation.to_text(job.klass),
        _data(job),
        tags,
        round(reservation.left, 3),
    )


def _data(job: Job) -> msgspec.Raw:
    text = job.raw_data.encode("utf-8", "surrogateescape")
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        text = msgspec.json.encode(validation.to_text(job.raw_data))
    return msgspec.Raw(text)
