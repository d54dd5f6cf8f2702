"""When a job that raised runs again by itself, and after how long.

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
    """Always the same."""
    validation.checked_number("seconds", seconds, least=0)
    return lambda used: seconds


def exponential(
    first: float = 5.0, most: float = 3600.0, *, factor: float = 2.0, jitter: float = 0.25
) -> Backoff:
    """`first` seconds, then `factor` times as long each time, up to `most`. A random part of up to
    `jitter` is added, so that jobs that failed together don't come back together."""
    validation.checked_number("first", first, least=0)
    validation.checked_number("most", most, least=first)
    validation.checked_number("factor", factor, least=1)
    validation.checked_number("jitter", jitter, least=0)

    def seconds(used: int) -> float:
        # The exponent is bounded: past 64 doublings every delay is `most`, and a power may not
        # overflow.
        return min(first * factor ** min(used, 64), most) * (1 + random.random() * jitter)

    return seconds


def sidekiq(used: int) -> float:
    """Sidekiq's shape: the fourth power and a quarter of a minute, spread over ten seconds a
    retry."""
    return float(used**4 + 15 + random.randrange(10) * (used + 1))


def exq(used: int) -> float:
    """Exq's shape: as sidekiq's, spread over thirty seconds a retry."""
    return float(used**4 + 15 + random.randrange(30) * (used + 1))


GROWING = exponential()


@dataclass(frozen=True)
class RetryPolicy:
    """Exceptions of these classes are transient: the job runs again after `backoff`, at the cost of
    a retry. When none is left, it fails in its group with the last traceback."""

    on: type[Exception] | tuple[type[Exception], ...] = ()
    backoff: Backoff = GROWING

    def __post_init__(self) -> None:
        for kind in self.on if isinstance(self.on, tuple) else (self.on,):
            if not isinstance(kind, type) or not issubclass(kind, Exception):
                raise TypeError(
                    f"retry_on takes a class of exceptions or a tuple of such classes, not {kind!r}"
                )
        if not callable(self.backoff):
            raise TypeError(
                f"backoff takes a callable from the number of retries used to seconds, not {self.backoff!r}"
            )

    def delay(self, error: BaseException, used: int) -> float | None:
        """Seconds until the next attempt; None when this error isn't transient."""
        return max(0.0, self.backoff(used)) if isinstance(error, self.on) else None


NEVER = RetryPolicy()
