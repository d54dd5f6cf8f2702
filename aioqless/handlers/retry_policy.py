"""Retry policies: which errors are retried, and after how long.

A backoff is a callable: it takes how many of its retries the job has used, and returns seconds or
a timedelta.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from aioqless import validation
from aioqless.validation import Seconds

Backoff: TypeAlias = Callable[[int], Seconds]
ExceptionClasses: TypeAlias = type[Exception] | Collection[type[Exception]]


def fixed(delay: Seconds) -> Backoff:
    """Return a backoff of the same delay each time.

    Args:
        delay: Seconds, or a timedelta.
    """
    seconds = validation.check_seconds("delay", delay)
    return lambda _used: seconds


def exponential(
    first: Seconds = 5.0, most: Seconds = 3600.0, *, factor: float = 2.0, jitter: float = 0.25
) -> Backoff:
    """Return a backoff that grows exponentially.

    Args:
        first: Time before the first retry, in seconds or as a timedelta.
        most: Maximum delay, without the jitter.
        factor: Each delay is this many times the one before.
        jitter: Random share to add, so that jobs which failed together are not retried together.

    Raises:
        ValueError: A value is out of range.
    """
    shortest = validation.check_seconds("first", first)
    longest = validation.check_seconds("most", most, least=shortest)
    validation.check_number("factor", factor, least=1)
    validation.check_number("jitter", jitter, least=0)

    def seconds(used: int) -> float:
        # The exponent is bounded: past 64 doublings every delay is `most`, and a power may not
        # overflow.
        return min(shortest * factor ** min(used, 64), longest) * (1 + random.random() * jitter)

    return seconds


def sidekiq(used: int) -> float:
    """Return Sidekiq's delay: the fourth power and 15 s, spread over 10 s a retry."""
    return float(used**4 + 15 + random.randrange(10) * (used + 1))


def exq(used: int) -> float:
    """Return exq's delay: as Sidekiq's, spread over 30 s a retry."""
    return float(used**4 + 15 + random.randrange(30) * (used + 1))


DEFAULT_BACKOFF = exponential()


@dataclass(frozen=True)
class RetryPolicy:
    """Which exceptions are transient, and how long to wait before a retry.

    When a job has no retries left, it fails in its group with the last traceback.

    Args:
        retry_on: Exceptions that are retried: a class, or several; default: all but those of
            `dont_retry_on` if there are any, else none.
        backoff: From the number of retries used to seconds or a timedelta.
        dont_retry_on: Exceptions that are not retried, even if `retry_on` covers them.

    Raises:
        TypeError: A value is of the wrong type.
    """

    retry_on: ExceptionClasses = ()
    backoff: Backoff = DEFAULT_BACKOFF
    dont_retry_on: ExceptionClasses = ()

    def __post_init__(self) -> None:
        _classes("retry_on", self.retry_on)
        _classes("dont_retry_on", self.dont_retry_on)
        if not callable(self.backoff):
            raise TypeError(
                "backoff must be a function such as fixed(2) or exponential(2) of "
                "aioqless.handlers.retry_policy, from the number of retries used to seconds; "
                f"fixed(0) retries at once (got {self.backoff!r})"
            )

    def delay(self, error: BaseException, used: int) -> float | None:
        """Return the seconds until the next attempt; None if the error is not transient."""
        excluded = _classes("dont_retry_on", self.dont_retry_on)
        retried = _classes("retry_on", self.retry_on) or ((Exception,) if excluded else ())
        kind = type(error)  # by which `except` decides; an error's __class__ may raise
        if issubclass(kind, excluded) or not issubclass(kind, retried):
            return None
        return self.pause(used)

    def pause(self, used: int) -> float:
        """Return the seconds before a retry, by the number of retries used."""
        return max(0.0, validation.check_seconds("backoff", self.backoff(used), least=-math.inf))


def _classes(what: str, given: ExceptionClasses) -> tuple[type[Exception], ...]:
    """Return classes of exceptions, of which one may be given alone.

    Raises:
        TypeError: One is something else.
    """
    classes = tuple(given) if isinstance(given, list | tuple | set | frozenset) else (given,)
    for each in classes:
        if not isinstance(each, type) or not issubclass(each, Exception):
            raise TypeError(
                f"{what} must be a class of exceptions, or several, such as "
                f"(ConnectionError, TimeoutError) (got {each!r})"
            )
    return classes


NEVER = RetryPolicy()
