"""What is sent and answered, as types: bodies are checked against them, and the OpenAPI description
is made of them."""

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
    Meta(gt=0, le=86_400, description="Seconds; no more than the desk's `longest` are given."),
]
Reason = Annotated[str, Meta(min_length=1, max_length=4000)]


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """The user. Where the application knows the user by itself, both may be left out; elsewhere the
    start-up token is required."""

    name: Name | None = None
    startup_token: Annotated[str, Meta(max_length=512)] | None = None


class Ask(msgspec.Struct, forbid_unknown_fields=True):
    """For how long the next job is wanted, and whether those that were skipped are wanted again."""

    limit: Limit | None = None
    again: bool = False


class Held(msgspec.Struct, forbid_unknown_fields=True):
    """Which reservation is meant."""

    jid: Jid
    fence: Fence


class Extend(Held):
    """How much longer it is needed, from now."""

    limit: Limit | None = None


class Finish(Held):
    """The answer: any JSON."""

    answer: Any


class Reject(Held):
    """What is wrong with the job."""

    reason: Reason


class HandOver(Held):
    """To whom, and for how long it waits there."""

    to: Name
    limit: Limit | None = None


class Who(msgspec.Struct):
    """The person of this session, and the token that each of its changes carries; null where nobody
    is signed in."""

    person: str | None
    token: str | None


class Task(msgspec.Struct):
    """A reserved job. `left` are the seconds that remained when this was said. Data that aren't
    JSON are given as a text."""

    jid: str
    fence: int
    klass: str
    data: Any
    tags: list[str]
    left: float


class Offer(msgspec.Struct):
    """What a session has reserved, and how many jobs it was not offered since the person had
    skipped them."""

    task: Task | None
    skipped: int


class Extended(msgspec.Struct):
    """How many seconds there are now."""

    left: float


class Done(msgspec.Struct):
    """What state the job is in now."""

    state: str


class Lot(msgspec.Struct):
    """What became of a job that this session had, and by whom: `over` means that its time is, but
    that nobody has taken it."""

    what: What
    by: str | None


class Counts(msgspec.Struct):
    """A desk: how many jobs wait, how many somebody has, and how long reservations last, in
    seconds."""

    name: str
    waiting: int
    reserved: int
    paused: bool
    limit: float
    longest: float


class Trouble(msgspec.Struct):
    """Why something was refused: a word for programs, a sentence for people, and who has the job,
    where that is known."""

    code: str
    message: str
    by: str | None = None


def task_of(reservation: Reservation) -> Task:
    """A reservation as it is answered."""
    job = reservation.job
    tags = [validation.readable(tag) for tag in job.tags]
    return Task(
        job.jid,
        reservation.fence,
        validation.readable(job.klass),
        _data(job),
        tags,
        round(reservation.left, 3),
    )


def _data(job: Job) -> msgspec.Raw:
    text = job.raw_data.encode("utf-8", "surrogateescape")
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        text = msgspec.json.encode(validation.readable(job.raw_data))
    return msgspec.Raw(text)
