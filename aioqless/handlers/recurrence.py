"""The schedule of a recurring job, declared by `@job`."""

from __future__ import annotations

from dataclasses import dataclass, field

from aioqless.client.put_options import CheckedOptions, ScheduleOptions
from aioqless.client.recurring.schedule import Schedule, limits_of, make_schedule
from aioqless.handlers.signature import Takes

SCHEDULE_OPTIONS = (*ScheduleOptions.__annotations__, "data")


@dataclass(frozen=True)
class Recurrence:
    """When instances are put, and with what data."""

    schedule: Schedule
    data: object
    limits: CheckedOptions = field(hash=False)  # arguments of the commands that declare it


def recurrence_of(options: CheckedOptions, takes: Takes) -> Recurrence | None:
    """Return the schedule in checked options; None when there is none.

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
    return Recurrence(schedule, data, limits_of(options))
