"""When a recurring job's instances come: every so many seconds, or at the times of a cron
expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from aioqless import validation
from aioqless.client.recurring.cron import Cron

MOST_CRON_BACKLOG = 1000


@dataclass(frozen=True)
class Every:
    """An interval of so many seconds."""

    seconds: float

    def __post_init__(self) -> None:
        if validation.check_number("every", self.seconds, least=0) == 0:
            raise ValueError("every must be more than 0 seconds")

    def next(self, after: float) -> float:
        """An interval later."""
        return after + self.seconds


Schedule: TypeAlias = Every | Cron


def schedule_of(options: Mapping[str, Any]) -> Schedule:
    """The schedule that `every`, or `cron` with `timezone`, say. Raises ValueError and TypeError,
    naming what is wrong."""
    every, cron, timezone = options.get("every"), options.get("cron"), options.get("timezone")
    if (every is None) == (cron is None):
        raise TypeError(
            "a recurring job has either every=, in seconds, or cron=, such as '0 9 * * mon-fri'"
        )
    if every is None:
        return Cron(
            validation.check_name("cron", cron or ""), "UTC" if timezone is None else timezone
        )
    if timezone is not None:
        raise TypeError("timezone goes with cron: an interval has none")
    return Every(every)


def checked_backlog(schedule: Schedule, backlog: int | None) -> int | None:
    """How many missed instances are made up for, 0 for all; None if what was missed counts once.
    Raises ValueError and TypeError."""
    if backlog is None:
        return None
    validation.check_number("backlog", backlog, least=0)
    if isinstance(schedule, Cron) and backlog > MOST_CRON_BACKLOG:
        raise ValueError(
            f"backlog {backlog} is more than {MOST_CRON_BACKLOG}, the most with a cron expression; 0 makes up for all"
        )
    return backlog
