"""The schedule of a recurring job, declared by `@job`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioqless import validation
from aioqless.client.recurring.schedule import Schedule, check_backlog, make_schedule
from aioqless.handlers.signature import Takes

SCHEDULE_OPTIONS = ("timezone", "data", "queue", "backlog")


@dataclass(frozen=True)
class Recurrence:
    """When instances are put, with what data, and into which queue.

    Without a queue, into the first that the worker serves.
    """

    schedule: Schedule
    data: object = None
    queue: str | None = None
    backlog: int | None = None


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
    queue = validation.check_name("queue", options["queue"]) if "queue" in options else None
    if "data" in options:
        data = options["data"]
    else:
        try:
            data = takes.data((), {})
        except TypeError as missing:
            raise TypeError(
                f"a recurring job needs the data= that its function takes: {missing}"
            ) from None
    return Recurrence(schedule, data, queue, check_backlog(schedule, options.get("backlog")))
