"""The schedule of a recurring job: an interval, or a cron expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from aioqless.client.put_options import CheckedOptions
from aioqless.client.recurring.cron import Cron

MAX_CRON_BACKLOG = 1000


@dataclass(frozen=True)
class Every:
    """An interval.

    Attributes:
        seconds: Its length.
    """

    seconds: float

    @property
    def arguments(self) -> CheckedOptions:
        """The arguments of the commands that make a recurring job of it."""
        return {"interval": self.seconds}

    def next(self, after: float) -> float:
        """Return the time of an instance that is due after another one."""
        return after + self.seconds


Schedule: TypeAlias = Every | Cron


def make_schedule(options: CheckedOptions) -> Schedule:
    """Return the schedule of checked options: `every`, or `cron` with `timezone`.

    Raises:
        TypeError: There is neither or both, or an interval has a time zone.
        ValueError: The cron expression can't be parsed, or its backlog is out of range.
    """
    every, cron, timezone = options.get("every"), options.get("cron"), options.get("timezone")
    if (every is None) == (cron is None):
        raise TypeError(
            "a recurring job has either every=, in seconds or as a timedelta, or cron=, such as "
            "'0 9 * * mon-fri'"
        )
    if every is not None:
        if timezone is not None:
            raise TypeError("timezone goes with cron: an interval has none")
        return Every(every)
    if (backlog := options.get("backlog") or 0) > MAX_CRON_BACKLOG:
        raise ValueError(
            f"backlog {backlog} is more than {MAX_CRON_BACKLOG}, the most with a cron expression; "
            "0 makes up for all"
        )
    return Cron(cron or "", timezone or "UTC")


def limits_of(options: CheckedOptions) -> CheckedOptions:
    """Return checked options as arguments of the commands that make recurring jobs.

    They say when a job ends, how its instances are spread, and how many are made up for.
    """
    return {
        "ends": options.get("until"),
        "max_runs": options.get("max_runs"),
        "jitter": options.get("jitter"),
        "backlog": options.get("backlog"),
    }
