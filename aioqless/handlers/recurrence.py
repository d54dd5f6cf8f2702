"""The schedule of a recurring job, declared by `@job`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aioqless.client.recurring.schedule import (
    LIMITS,
    Limits,
    Schedule,
    check_backlog,
    make_schedule,
    read_limits,
)
from aioqless.handlers.signature import Takes

SCHEDULE_OPTIONS = ("timezone", "data", "backlog", *LIMITS)


@dataclass(frozen=True)
class Recurrence:
    """When instances are put, and with what data.

    They are put into the handler's queue; without one, into the first queue of the worker.
    """

    schedule: Schedule
    data: object = None
    backlog: int | None = None
    limits: Limits = field(default_factory=lambda: read_limits({}), hash=False)


def recurrence_of(options: Mapping[str, Any], takes: Takes) -> Recurrence | None:
    """Return the schedule in the options; None when there is none.

    Raises:
        TypeError: An option needs a schedule, or the function needs data.
        ValueError: An option is out of range.
    """
    if "every" not in options and "cron" not in options:
        if astray := [name for name in SCHEDULE_OPTIONS if name in options]:
            raise TypeError(f"{astray[0]} is for a recurring job: pass every= or cron=, too")
        return None
    schedule = make_schedule(options)
    if "data" in options:
        data = options["data"]
    else:
        try:
            data = takes.data((), {})
        except TypeError as missing:
            raise TypeError(
                f"a recurring job needs the data= that its function takes: {missing}"
            ) from None
    backlog = check_backlog(schedule, options.get("backlog"))
    return Recurrence(schedule, data, backlog, read_limits(options))
