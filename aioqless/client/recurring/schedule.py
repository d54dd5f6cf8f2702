"""The schedule of a recurring job: an interval, or a cron expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, TypedDict

from aioqless import validation
from aioqless.client.recurring.cron import Cron, zone_name
from aioqless.validation import Seconds

MAX_CRON_BACKLOG = 1000
LIMITS = ("until", "max_runs", "jitter")


@dataclass(frozen=True)
class Every:
    """An interval.

    Attributes:
        seconds: Its length.
    """

    seconds: float

    def next(self, after: float) -> float:
        """Return the time of an instance that is due after another one."""
        return after + self.seconds


Schedule: TypeAlias = Every | Cron


def make_every(interval: Seconds) -> Every:
    """Return the schedule of an interval.

    Raises:
        TypeError: It is neither a number nor a timedelta.
        ValueError: It is not more than 0.
    """
    if (seconds := validation.check_seconds("every", interval)) == 0:
        raise ValueError("every must be more than 0 seconds")
    return Every(seconds)


def make_schedule(options: Mapping[str, Any]) -> Schedule:
    """Return the schedule of the options `every`, or `cron` with `timezone`.

    Raises:
        TypeError: There is neither or both, or one has the wrong type.
        ValueError: One is out of range, or can't be parsed.
    """
    every, cron, timezone = options.get("every"), options.get("cron"), options.get("timezone")
    if (every is None) == (cron is None):
        raise TypeError(
            "a recurring job has either every=, in seconds or as a timedelta, or cron=, such as "
            "'0 9 * * mon-fri'"
        )
    if every is None:
        return Cron(
            validation.check_name("cron", cron or ""),
            "UTC" if timezone is None else zone_name(timezone),
        )
    if timezone is not None:
        raise TypeError("timezone goes with cron: an interval has none")
    return make_every(every)


class Limits(TypedDict):
    """When a recurring job ends, and how its instances are spread, as commands take them."""

    ends: float | None
    max_runs: int | None
    jitter: float | None


def read_limits(options: Mapping[str, Any]) -> Limits:
    """Return the options `until`, `max_runs` and `jitter`; None where one is missing.

    Raises:
        TypeError: One has the wrong type.
        ValueError: One is out of range.
    """
    until, max_runs, jitter = (options.get(name) for name in LIMITS)
    if max_runs is not None and (
        isinstance(max_runs, bool) or not isinstance(max_runs, int) or max_runs < 1
    ):
        raise ValueError(f"max_runs must be an integer >= 1 (got {max_runs!r})")
    return {
        "ends": None if until is None else read_until(until),
        "max_runs": max_runs,
        "jitter": None if jitter is None else validation.check_seconds("jitter", jitter),
    }


def read_until(until: float | datetime) -> float:
    """Return the end of a recurring job in seconds since 1970.

    Raises:
        TypeError: It is neither a number nor a datetime.
        ValueError: It is negative, or a datetime without a time zone.
    """
    if isinstance(until, datetime):
        return validation.check_time("until", until)
    return validation.check_number("until", until, least=0)


def check_backlog(schedule: Schedule, backlog: int | None) -> int | None:
    """Return how many missed instances are made up for, 0 for all; None to coalesce them into one.

    Raises:
        TypeError: It is not a number.
        ValueError: It is out of range.
    """
    if backlog is None:
        return None
    validation.check_number("backlog", backlog, least=0)
    if isinstance(schedule, Cron) and backlog > MAX_CRON_BACKLOG:
        raise ValueError(
            f"backlog {backlog} is more than {MAX_CRON_BACKLOG}, the most with a cron expression; "
            "0 makes up for all"
        )
    return backlog
