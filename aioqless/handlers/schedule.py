"""What `@job` says of a job that comes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioqless import validation
from aioqless.client.recurring.schedules import Schedule, checked_backlog, schedule_of
from aioqless.handlers.signature import Takes

BESIDE = ("timezone", "data", "queue", "backlog")


@dataclass(frozen=True)
class Recurs:
    """When instances come, of what data, and into which queue; None: the first that the worker
    serves."""

    schedule: Schedule
    data: Any = None
    queue: str | None = None
    backlog: int | None = None


def recurs_of(options: Mapping[str, Any], takes: Takes) -> Recurs | None:
    """What the options say; None where they say no schedule. Raises TypeError and ValueError,
    naming what is wrong."""
    if "every" not in options and "cron" not in options:
        if astray := [name for name in BESIDE if name in options]:
            raise TypeError(f"{astray[0]} is about a recurring job: say every= or cron=, too")
        return None
    schedule = schedule_of(options)
    queue = validation.checked("queue", options["queue"]) if "queue" in options else None
    if "data" in options:
        data = options["data"]
    else:
        try:
            data = takes.data((), {})
        except TypeError as missing:
            raise TypeError(
                f"a recurring job needs the data= that its function takes: {missing}"
            ) from None
    return Recurs(schedule, data, queue, checked_backlog(schedule, options.get("backlog")))
