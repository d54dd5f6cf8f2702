"""Retry policies: which errors are retried, and after how long.

A backoff is a callable: it takes how many of its retries the job has used, and returns seconds or
a timedelta.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from aioqless import validation
from aioqless.validation import Seconds

Backoff: TypeAlias = Callable[[int], Seconds]


def fixed(delay: Seconds) -> Backoff:
    """Return a backoff of the same delay each time."""
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
        on: Classes of exceptions that are retried.
        backoff: From the number of retries used to seconds.

    Raises:
        TypeError: A value is of the wrong type.
    """

    on: type[Exception] | tuple[type[Exception], ...] = ()
    backoff: Backoff = DEFAULT_BACKOFF

    def __post_init__(self) -> None:
        for kind in self.on if isinstance(self.on, tuple) else (self.on,):
            if not isinstance(kind, type) or not issubclass(kind, Exception):
                raise TypeError(
                    f"retry_on takes a class of exceptions or a tuple of such classes, not {kind!r}"
                )
        if not callable(self.backoff):
            raise TypeError(
                "backoff takes a callable from the number of retries used to seconds, "
                f"not {self.backoff!r}"
            )

    def delay(self, error: BaseException, used: int) -> float | None:
        """Return the seconds until the next attempt; None if the error is not transient."""
        if not isinstance(error, self.on):
            return None
        return max(0.0, validation.check_seconds("backoff", self.backoff(used), least=-math.inf))


NEVER = RetryPolicy()
