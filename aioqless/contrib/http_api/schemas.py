"""Types of requests and responses, for validation and for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aioqless import validation
from aioqless.client.job import JobRecord
from aioqless.client.job.state import JobState
from aioqless.client.job.summaries import JobSummary
from aioqless.contrib.http.tokens import MAX_JIDS, MAX_LIFETIME
from aioqless.errors import error_line

MAX_WAIT = 60  # seconds
MAX_JOBS = 1_000

Wait = Annotated[
    float, Meta(ge=0, le=MAX_WAIT, description="Seconds to wait at most for something new.")
]
SetName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
Tag = Annotated[str, Meta(min_length=1, max_length=512)]
Period = Annotated[float, Meta(ge=0, le=1e9)]


class PutQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Options of put."""

    delay: Annotated[Period, Meta(description="Seconds until the job may run.")] | UnsetType = UNSET
    priority: (
        Annotated[float, Meta(ge=-100, le=100, description="Lower runs sooner.")] | UnsetType
    ) = UNSET
    expires_in: (
        Annotated[Period, Meta(description="Seconds in which the job must start.")] | UnsetType
    ) = UNSET
    tags: Annotated[list[Tag], Meta(max_length=20, description="Tags to find the job by.")] = []
    set: Annotated[SetName, Meta(description="Job set that it joins.")] | UnsetType = UNSET


class WaitQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How long to wait."""

    wait: Wait = 0


class OutputQuery(WaitQuery):
    """The part of the output to read."""

    after: (
        Annotated[str, Meta(max_length=64, description="The position that was read last.")]
        | UnsetType
    ) = UNSET


class FindQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which jobs to find: those of a klass, or with a tag."""

    klass: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET
    tag: Tag | UnsetType = UNSET
    state: (
        Literal["waiting", "scheduled", "depends", "running", "stalled", "failed", "complete"]
        | UnsetType
    ) = UNSET
    cursor: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_=-]*$", max_length=8000)] = ""


class Signal(msgspec.Struct, forbid_unknown_fields=True):
    """The value of a signal, and whether it replaces one that the job has not received."""

    value: Any = None
    replace: bool = False


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """What a browser's token may do, and for how many seconds."""

    may_put: Annotated[list[str], Meta(max_length=100)] = []
    jids: Annotated[list[str], Meta(max_length=MAX_JIDS)] = []
    seconds: Annotated[float, Meta(gt=0, le=MAX_LIFETIME)] = 600


class IssuedToken(msgspec.Struct):
    """A browser's token, and the number of seconds after which it ends."""

    token: str
    seconds: float


class Put(msgspec.Struct):
    """The jid, and whether there was such a job already, so that nothing was put."""

    jid: str
    existing: bool


class PutMany(msgspec.Struct):
    """The jids, in order, and whether there were such jobs already, so that nothing was put."""

    jids: list[str]
    existing: bool


class Failure(msgspec.Struct):
    """Why a job failed last."""

    group: str
    message: str


class Progress(msgspec.Struct):
    """The latest progress, from 0 to 1; `when` is in seconds since 1970."""

    share: float
    message: str
    when: float


class JobInfo(msgspec.Struct, omit_defaults=True):
    """A job, without its data. Lists of jobs are without their progress."""

    jid: str
    klass: str
    queue: str
    state: str
    tags: list[str]
    progress: Progress | UnsetType = UNSET
    failure: Failure | UnsetType = UNSET


class JobPage(msgspec.Struct, omit_defaults=True):
    """Jobs that were found, perhaps none, and the cursor of the next portion if there is more."""

    jobs: list[JobInfo]
    cursor: str | UnsetType = UNSET


class OutputItem(msgspec.Struct, omit_defaults=True):
    """A value, a restart (discard the values before it), or the number of missing values."""

    kind: Literal["value", "restarted", "missed"]
    value: Any = UNSET
    count: int | UnsetType = UNSET


class OutputPage(msgspec.Struct, omit_defaults=True):
    """Items of the output, the position after them, and whether the job has ended."""

    items: list[OutputItem]
    ended: bool
    after: str | UnsetType = UNSET


def info_of(job: JobRecord | JobSummary) -> JobInfo:
    """Return the response for a job."""
    return JobInfo(
        validation.to_text(job.jid),
        validation.to_text(job.klass),
        validation.to_text(job.queue),
        job.state,
        [validation.to_text(tag) for tag in job.tags],
        progress_of(job),
        failure_of(job),
    )


def progress_of(job: JobRecord | JobSummary) -> Progress | UnsetType:
    """Return the progress of a job, if it has any."""
    found = job.last_progress if isinstance(job, JobRecord) else None
    if found is None:
        return UNSET
    return Progress(found.share, validation.to_text(found.message), found.when)


def failure_of(job: JobRecord | JobSummary) -> Failure | UnsetType:
    """Return why a job has failed, without the traceback."""
    if job.state != JobState.FAILED:
        return UNSET
    if isinstance(job, JobRecord):
        group, message = (job.failure.group, job.failure.message) if job.failure else ("", "")
    else:
        group, message = job.group, error_line(job.message)
    return Failure(validation.to_text(group), validation.to_text(message))
