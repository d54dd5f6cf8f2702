"""Options of put, of recurring jobs and of `@job`: each is declared and checked here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict, get_args
from zoneinfo import ZoneInfo

from aioqless import validation
from aioqless.client import job_data
from aioqless.errors import InvalidData
from aioqless.store import PutManyRow
from aioqless.validation import Seconds

MAX_CONTEXT = 4_096  # bytes

Key: TypeAlias = str | tuple[str, ...]
OnFailed: TypeAlias = Literal["hold", "fail", "cancel"]


class ConstraintOptions(TypedDict, total=False):
    """Uniqueness, concurrency limit and rate limit of a job.

    A key is a string, which all jobs share that name it, or a tuple of names of fields of the data,
    which gives a key for each combination of their values, separately for each klass.

    Attributes:
        unique: Key that one job has at a time; a put with a taken key returns that job's jid.
        unique_until: Whether the job has the key until it starts, or until it ends (the default).
        unique_for: Time from now for which the job has the key instead, whatever its state.
        concurrency_key: What `max_concurrent` and `rate_limit` count; default: the klass.
        max_concurrent: Maximum number of jobs of the key that run at once.
        rate_limit: Maximum number of jobs of the key that start within a period.
    """

    unique: Key | None
    unique_until: Literal["started", "done"] | None
    unique_for: Seconds | None
    concurrency_key: Key | None
    max_concurrent: int | None
    rate_limit: tuple[int, Seconds] | None


class TemplateOptions(ConstraintOptions, total=False):
    """What a job that is put and the instances of a recurring job have in common.

    Attributes:
        jid: Id of the job; default: a random one.
        priority: Lower runs sooner; default: 0.
        tags: Tags to find the job by.
        retries: Maximum number of retries; default: the handler's, else 5.
    """

    jid: str | None
    priority: float | None
    tags: Sequence[str] | None
    retries: int | None


class PutOptions(TemplateOptions, total=False):
    """The options of put.

    Attributes:
        delay: Time until the job may run, in seconds or as a timedelta.
        at: When the job may run, a datetime with a time zone, instead of a delay.
        depends: Jids of jobs to wait for.
        context: Strings by name that travel with the job, such as those of a trace.
        expires_in: Time from now in which the job must start; a worker that gets it later fails
            it in the group `<queue>-expired`.
        on_failed: What happens to the job if one that it depends on fails.
        if_exists: What to do if the jid or the unique key is taken: leave that job alone, or raise
            JobExists. Default: a jid is moved here, a unique key is left alone.
    """

    delay: Seconds
    at: datetime | None
    depends: Sequence[str] | None
    context: Mapping[str, str] | None
    expires_in: Seconds | None
    on_failed: OnFailed | None
    if_exists: Literal["keep", "raise"] | None


class PutDefaults(TypedDict, total=False):
    """The options of put that a handler sets for all of its jobs; checked."""

    priority: float | None
    tags: Sequence[str] | None
    retries: int | None


class ScheduleOptions(TypedDict, total=False):
    """When the instances of a recurring job are due.

    Attributes:
        every: Interval, in seconds or as a timedelta.
        cron: Cron expression, or a nickname such as `@daily`, instead of an interval.
        timezone: With `cron`: its time zone, by its name or as a ZoneInfo; default: UTC.
        backlog: Maximum number of missed instances to make up for, 0 for all; default: missed
            instances are coalesced into one.
        until: When it ends, as a datetime with a time zone or in seconds since 1970: no instance is
            due later.
        max_runs: Number of instances after which it ends.
        jitter: Maximum random delay of each instance, in seconds or as a timedelta.
    """

    every: Seconds
    cron: str
    timezone: str | ZoneInfo
    backlog: int
    until: float | datetime
    max_runs: int
    jitter: Seconds


class RecurOptions(TemplateOptions, ScheduleOptions, total=False):
    """The options of recur: a jid, `every` or `cron`, and what its instances are put with.

    Attributes:
        offset: With `every`: time until the first instance; default: 0.
    """

    offset: Seconds


def add_options(  # noqa: C901  # one short case for each option reads best
    job: PutManyRow, options: PutOptions
) -> None:
    """Check the options that are set, and add them to a job, except its constraints.

    Raises:
        InvalidData: The context is too large.
        TypeError: An option has the wrong type.
        ValueError: An option is out of range.
    """
    if (jid := options.get("jid")) is not None:
        job["jid"] = validation.check_jid(jid)
    if "delay" in options:
        job["delay"] = validation.check_seconds("delay", options["delay"])
    if (at := options.get("at")) is not None:
        if "delay" in options:
            raise ValueError("delay and at are mutually exclusive")
        job["at"] = validation.check_time("at", at)
    if (priority := options.get("priority")) is not None:
        job["priority"] = validation.check_number("priority", priority)
    if (tags := options.get("tags")) is not None:
        job["tags"] = validation.check_names("tags", tags)
    if (retries := options.get("retries")) is not None:
        validation.check_number("retries", retries, least=0)
        job["retries"] = retries
    if (depends := options.get("depends")) is not None:
        job["depends"] = validation.check_names("depends", depends)
    if (context := options.get("context")) is not None:
        job["context"] = _encode_context(context)
    if (expires_in := options.get("expires_in")) is not None:
        job["expires_in"] = validation.check_seconds("expires_in", expires_in)
    if (on_failed := options.get("on_failed")) is not None:
        if on_failed not in (choices := get_args(OnFailed)):
            raise ValueError(f"on_failed must be one of {', '.join(choices)} (got {on_failed!r})")
        job["on_failed"] = on_failed


def _encode_context(texts: Mapping[str, str]) -> bytes:
    text = job_data.encode(validation.check_texts("context", texts))
    if len(text) > MAX_CONTEXT:
        raise InvalidData(
            f"context must be at most {MAX_CONTEXT:,} bytes (got {len(text):,}): "
            "put it into the data"
        )
    return text
