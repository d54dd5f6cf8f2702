"""Retry policies: which errors are retried, and after how long.

A backoff is a callable: it takes how many of its retries the job has used, and returns seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from aioqless import validation

Backoff: TypeAlias = Callable[[int], float]


def fixed(seconds: float) -> Backoff:
    """Return a backoff of the same delay each time."""
    validation.check_number("seconds", seconds, least=0)
    return lambda _used: seconds


def exponential(
    first: float = 5.0, most: float = 3600.0, *, factor: float = 2.0, jitter: float = 0.25
) -> Backoff:
    """Return a backoff that grows exponentially.

    Args:
        first: Seconds before the first retry.
        most: Maximum delay, without the jitter.
        factor: Each delay is this many times the one before.
        jitter: Random share to add, so that jobs which failed together are not retried together.

    Raises:
        ValueError: A value is out of range.
    """
    validation.check_number("first", first, least=0)
    validation.check_number("most", most, least=first)
    validation.check_number("factor", factor, least=1)
    validation.check_number("jitter", jitter, least=0)

    def seconds(used: int) -> float:
        # The exponent is bounded: past 64 doublings every delay is `most`, and a power may not
        # overflow.
        return min(first * factor ** min(used, 64), most) * (1 + random.random() * jitter)

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
        return max(0.0, self.backoff(used)) if isinstance(error, self.on) else None


NEVER = RetryPolicy()
