"""The options of `@job`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from aioqless import validation
from aioqless.client.constraints import (
    check_constraints,
    encode_constraints,
    key_fields,
    select_constraints,
)
from aioqless.client.put_options import ConstraintOptions, PutDefaults, ScheduleOptions
from aioqless.handlers.retry_policy import DEFAULT_BACKOFF, Backoff, ExceptionClasses, RetryPolicy
from aioqless.handlers.signature import Takes
from aioqless.validation import Seconds

MAX_RESULT_TTL = 1e10
RETRY_OPTIONS = {"retry_on", "dont_retry_on"}


class JobOptions(ConstraintOptions, ScheduleOptions, total=False):
    """The options of `@job`, besides its constraints and its schedule; all are optional.

    Times are in seconds, or timedeltas.
    """

    klass: str  # the class name of its jobs in Redis; default: `module.function`
    # Former klasses: to rename a handler, keep its old name here until no job of that name is left.
    aliases: Iterable[str]
    queue: str  # where its jobs are put unless the caller names a queue; default: "default"
    priority: float  # of its jobs; lower runs sooner
    tags: Iterable[str]  # of its jobs
    retries: int  # its jobs' number of retries
    # Exceptions that are transient; default: those of the worker's retry policy.
    retry_on: ExceptionClasses
    # Exceptions that are not retried; without retry_on, all others are.
    dont_retry_on: ExceptionClasses
    backoff: Backoff  # how long to wait before a retry; default: exponential
    # How long its result is kept, as JSON, for waiting callers and for dependent jobs.
    result_ttl: Seconds
    timeout: Seconds  # a run that takes longer is canceled and fails in `<queue>-timeout`
    # Run it in a process; default: coroutines run on the loop, plain functions in threads.
    executor: Literal["process"]
    data: object  # of recurring jobs


def checked(options: JobOptions) -> JobOptions:
    """Return the options.

    Raises:
        TypeError: One is unknown or of the wrong type.
        ValueError: One is out of range, or needs another.
    """
    if unknown := options.keys() - JobOptions.__annotations__.keys():
        raise TypeError(
            f"@job has no option {', '.join(sorted(unknown))}; "
            f"it has {', '.join(JobOptions.__annotations__)}"
        )
    if "klass" in options:
        validation.check_name("klass", options["klass"])
    if "queue" in options:
        validation.check_name("queue", options["queue"])
    if options.get("executor", "process") != "process":
        raise ValueError(
            f"executor must be 'process' or left out (got {options['executor']!r}): "
            "coroutines run on the event loop, plain functions in threads"
        )
    if "backoff" in options and not options.keys() & RETRY_OPTIONS:
        RetryPolicy(backoff=options["backoff"])  # a wrong type is reported first
        raise ValueError(
            "backoff needs retry_on or dont_retry_on, which say which exceptions are retried"
        )
    return options


def put_defaults_of(options: JobOptions) -> PutDefaults:
    """Return the options that all jobs of the handler are put with.

    Raises:
        TypeError: One is of the wrong type.
        ValueError: One is out of range.
    """
    defaults: PutDefaults = {}
    if "priority" in options:
        defaults["priority"] = validation.check_number("priority", options["priority"])
    if "tags" in options:
        defaults["tags"] = validation.check_names("tags", options["tags"])
    if "retries" in options:
        validation.check_number("retries", options["retries"], least=0)
        defaults["retries"] = options["retries"]
    return defaults


def timeout_of(options: JobOptions) -> float | None:
    """Return the timeout in the options, in seconds; None for none.

    Raises:
        TypeError: It is neither a number nor a timedelta.
        ValueError: It is out of range.
    """
    if "timeout" not in options:
        return None
    if (timeout := validation.check_seconds("timeout", options["timeout"])) == 0:
        raise ValueError("timeout must be > 0 seconds (got 0)")
    return timeout


def result_ttl_of(options: JobOptions) -> float | None:
    """Return how long results are kept, in seconds; None for not at all.

    Raises:
        TypeError: It is neither a number nor a timedelta.
        ValueError: It is out of range.
    """
    if "result_ttl" not in options:
        return None
    ttl = validation.check_seconds("result_ttl", options["result_ttl"], least=1)
    if ttl >= MAX_RESULT_TTL:
        raise ValueError(f"result_ttl must be less than {MAX_RESULT_TTL:g} seconds (got {ttl})")
    return ttl


def policy_of(options: JobOptions) -> RetryPolicy | None:
    """Return the retry policy in the options; None for the worker's."""
    if not options.keys() & RETRY_OPTIONS:
        return None
    return RetryPolicy(
        options.get("retry_on", ()),
        options.get("backoff", DEFAULT_BACKOFF),
        options.get("dont_retry_on", ()),
    )


def constraints_of(options: JobOptions, takes: Takes) -> ConstraintOptions:
    """Return the constraints among the options of `@job`.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is out of range, or a key is made of a field that the function doesn't
            take.
    """
    constraints = check_constraints(select_constraints(options))
    fields = key_fields(constraints)
    encode_constraints(constraints, "", lambda: dict.fromkeys(fields))
    known = takes.signature.parameters if takes.signature else None
    if known is not None and (wrong := fields - set(known)):
        raise ValueError(
            f"a key names the field {', '.join(sorted(wrong))}, but the function takes "
            f"{', '.join(known)}"
        )
    return constraints
