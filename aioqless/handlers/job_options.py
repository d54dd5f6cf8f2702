"""The options of `@job` and `@bulk_job`."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal

from aioqless import validation
from aioqless.client.constraints import encode_constraints, key_fields
from aioqless.client.new_job import Branch, check_branch
from aioqless.client.put_options import (
    CheckedOptions,
    OptionTable,
    PutOptions,
    ScheduleOptions,
    TemplateOptions,
    check_period,
    check_whole,
)
from aioqless.handlers.retry_policy import DEFAULT_BACKOFF, Backoff, ExceptionClasses, RetryPolicy
from aioqless.handlers.signature import Takes
from aioqless.lua import constant
from aioqless.validation import Seconds

MAX_RESULT_TTL = 1e10
MAX_WITHIN = constant("DAY")
RETRY_OPTIONS = {"retry_on", "dont_retry_on"}


def _check_executor(name: str, executor: object) -> object:
    if executor != "process":
        raise ValueError(
            f"{name} must be 'process' or left out (got {executor!r}): "
            "coroutines run on the event loop, plain functions in threads"
        )
    return executor


def _check_result_ttl(name: str, duration: Seconds) -> float:
    ttl = validation.check_seconds(name, duration, least=1)
    if ttl >= MAX_RESULT_TTL:
        raise ValueError(f"{name} must be less than {MAX_RESULT_TTL:g} seconds (got {ttl})")
    return ttl


def _check_within(name: str, duration: Seconds) -> float:
    if (seconds := validation.check_seconds(name, duration)) > MAX_WITHIN:
        raise ValueError(f"{name} must be at most a day (got {duration!r})")
    return seconds


def _check_fields(name: str, fields: tuple[str, ...]) -> tuple[str, ...]:
    if not (isinstance(fields, tuple) and all(type(field) is str for field in fields)):
        raise TypeError(f"{name} must be a tuple of the names of fields of the data ({fields!r})")
    return fields


class JobOptions(TemplateOptions, ScheduleOptions, total=False):
    """The options of `@job`: those of its jobs, its schedule, and these; all are optional.

    Times are in seconds, or timedeltas.
    """

    klass: Annotated[str, validation.check_name]  # its jobs' in Redis; default: `module.function`
    # Former klasses: to rename a handler, keep its old name here until no job of that name is left.
    aliases: Annotated[Iterable[str], validation.check_names]
    # Where its jobs are put unless the caller names a queue; default: "default".
    queue: Annotated[str, validation.check_name]
    # Exceptions that are transient; default: those of the worker's retry policy.
    retry_on: ExceptionClasses
    # Exceptions that are not retried; without retry_on, all others are.
    dont_retry_on: ExceptionClasses
    backoff: Backoff  # how long to wait before a retry; default: exponential
    # How long its result is kept, as JSON, for waiting callers and for dependent jobs.
    result_ttl: Annotated[Seconds, _check_result_ttl]
    # How long what it emits is kept after the last value; default: an hour.
    output_ttl: Annotated[Seconds, _check_result_ttl]
    # A later run continues the output of the one before; default: it restarts it.
    keep_output: Annotated[bool, validation.check_bool]
    # A run that takes longer is canceled and fails in `<queue>-timeout`.
    timeout: Annotated[Seconds, check_period]
    # Run it in a process; default: coroutines run on the loop, plain functions in threads.
    executor: Annotated[Literal["process"], _check_executor]
    data: object  # of recurring jobs
    # The job that is put when one of its jobs fails, in addition to that of the failed job's own.
    on_failure: Annotated[Branch, check_branch]


class BulkJobOptions(JobOptions, total=False):
    """The options of `@bulk_job`: those of `@job`, and these."""

    size: Annotated[int, partial(check_whole, most=constant("MAX_BATCH"))]  # default: 100
    within: Annotated[Seconds, _check_within]  # how long a job waits for others; default: 1 s
    # Fields of the data: only jobs with the same values are taken together.
    together_by: Annotated[tuple[str, ...], _check_fields]


_BULK = BulkJobOptions.__annotations__.keys() - JobOptions.__annotations__.keys()
_OF_PUT = {
    name: f": it is one of put: write `client.put(handler.data(...), {name}=...)`"
    for name in PutOptions.__annotations__
}
JOB = OptionTable(
    "@job", JobOptions, {**_OF_PUT, **dict.fromkeys(_BULK, ": it is one of @bulk_job")}
)
BULK_JOB = OptionTable("@bulk_job", BulkJobOptions, _OF_PUT)


def check_options(options: JobOptions, *, is_bulk: bool) -> CheckedOptions:
    """Return the options, checked; durations in seconds.

    Raises:
        TypeError: One is unknown or of the wrong type.
        ValueError: One is out of range, or needs another.
    """
    table = BULK_JOB if is_bulk else JOB
    table.refuse_unknown(options)
    if options.get("retries", 0) is None:
        raise ValueError(
            "retries must be an integer >= 0 (got None): a job is never retried for ever; leave it "
            "out for the default"
        )
    if "backoff" in options and not options.keys() & RETRY_OPTIONS:
        RetryPolicy(backoff=options["backoff"])  # a wrong type is reported first
        raise ValueError(
            "backoff needs retry_on or dont_retry_on, which say which exceptions are retried"
        )
    defaults = {"size": 100, "within": 1.0} if is_bulk else {}
    return {**defaults, **table.check(options)}


def policy_of(options: CheckedOptions) -> RetryPolicy | None:
    """Return the retry policy in the options; None for the worker's."""
    if not options.keys() & RETRY_OPTIONS:
        return None
    return RetryPolicy(
        options.get("retry_on", ()),
        options.get("backoff", DEFAULT_BACKOFF),
        options.get("dont_retry_on", ()),
    )


def put_defaults_of(options: CheckedOptions, takes: Takes) -> CheckedOptions:
    """Return the options that all jobs of the handler are put with.

    Raises:
        ValueError: A key is made of a field that the function doesn't take.
    """
    names = TemplateOptions.__annotations__.keys() | _BULK
    defaults = {name: value for name, value in options.items() if name in names}
    fields = key_fields(defaults)
    encode_constraints(defaults, "", lambda: dict.fromkeys(fields, 1))
    known = takes.signature.parameters if takes.signature else None
    if known is not None and (wrong := fields - set(known)):
        raise ValueError(
            f"a key names the field {', '.join(sorted(wrong))}, but the function takes "
            f"{', '.join(known)}"
        )
    return defaults
