"""What `@job` can be told about a handler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from aioqless import validation
from aioqless.client.put.constraints import TermOptions, Terms
from aioqless.handlers.retry_policy import Backoff, RetryPolicy, exponential
from aioqless.handlers.signature import Takes


class JobOptions(TermOptions, total=False):
    """The options of `@job`, beside those of TermOptions; all may be left out. Times are in
    seconds."""

    klass: str  # the name its jobs have in Redis; by default `module.function`
    aliases: Iterable[
        str
        # former klasses: to rename a handler, keep its old name here until no job of that name is
        # left
    ]
    retries: int  # what its jobs are put with
    retry_on: (
        type[Exception] | tuple[type[Exception], ...]
    )  # exceptions that are transient; without it, the worker's policy holds
    backoff: Backoff  # how long to wait before such a retry, by default a growing time
    # for how many seconds what it returns is kept, as JSON, for who waits for it and for the jobs
    # that depend on it
    result_ttl: float
    timeout: float  # a run that takes longer is cancelled and fails in `<queue>-timeout`
    executor: Literal[
        "process"
    ]  # run it in a process of its own; else coroutines run on the loop, plain functions in threads
    every: float  # it comes by itself, whenever so many seconds have passed
    cron: str  # or at the times of this cron expression
    timezone: str  # where these are the times of day; by default UTC
    data: Any  # of the jobs that come so
    queue: str  # which they come into; by default the first that the worker serves
    # how many that nobody was there for are made up for, 0: all; without it, they count once
    backlog: int


def checked(options: JobOptions) -> JobOptions:
    """The options, if there can be such a handler. Raises TypeError and ValueError, naming what is
    wrong."""
    if unknown := options.keys() - JobOptions.__annotations__.keys():
        raise TypeError(
            f"@job has no option {', '.join(sorted(unknown))}; it has {', '.join(JobOptions.__annotations__)}"
        )
    if "klass" in options:
        validation.checked("klass", options["klass"])
    if "retries" in options:
        validation.checked_number("retries", options["retries"], least=0)
    if (
        "timeout" in options
        and validation.checked_number("timeout", options["timeout"], least=0) == 0
    ):
        raise ValueError("timeout must be more than 0 seconds")
    if options.get("executor", "process") != "process":
        raise ValueError(
            f"executor is 'process' or left out, not {options['executor']!r}: coroutines run on the loop, others in threads"
        )
    if (
        "result_ttl" in options
        and not 1 <= validation.checked_number("result_ttl", options["result_ttl"]) < 1e10
    ):
        raise ValueError(
            f"result_ttl {options['result_ttl']!r} must be a number of seconds, 1 or more"
        )
    if "backoff" in options and "retry_on" not in options:
        raise ValueError(
            "backoff says how long to wait before a retry: say retry_on which exceptions, too"
        )
    return options


def policy_of(options: JobOptions) -> RetryPolicy | None:
    """The retry policy that the options say; None for the worker's."""
    return (
        RetryPolicy(options["retry_on"], options.get("backoff") or exponential())
        if "retry_on" in options
        else None
    )


def terms_of(options: JobOptions, takes: Takes) -> Terms | None:
    """The terms that the options say. Raises TypeError and ValueError, also for a key drawn from
    what the function doesn't take."""
    terms = Terms.of(options)
    if terms is None:
        return None
    terms.drawn("", lambda: dict.fromkeys(terms.fields))
    known = takes.parameters.__struct_fields__ if takes.parameters else None
    if known is not None and (wrong := terms.fields - set(known)):
        raise ValueError(
            f"a key is drawn from {', '.join(sorted(wrong))}, but the function takes {', '.join(known)}"
        )
    return terms
