"""The schedule of a recurring job: an interval, or a cron expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from aioqless import validation
from aioqless.client.recurring.cron import Cron
from aioqless.validation import Seconds

MAX_CRON_BACKLOG = 1000


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
            validation.check_name("cron", cron or ""), "UTC" if timezone is None else timezone
        )
    if timezone is not None:
        raise TypeError("timezone goes with cron: an interval has none")
    return make_every(every)


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
