"""gold/paths: the chain of jobs that decided when a job with dependencies could begin."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa

from aioqless.contrib.lake.schema import STEP, TABLES

LONGEST: Final = 90  # steps that are followed back
COLUMNS: Final = ("namespace", "jid", "state", "depends", *STEP.names[1:])  # of jobs that it needs

Row = Mapping[str, Any]


def paths(jobs: pa.Table, dependencies: pa.Table, known: pa.Table) -> pa.Table:
    """Return the critical path of each job that has dependencies which ended before it began.

    It is the dependency that ended last, the one that this had waited for, and so on. `steps`
    begins with the first.

    Args:
        jobs: Jobs with dependencies, of one namespace.
        dependencies: The jobs that they depend on, as far as there are any.
        known: Paths that these have, from earlier calls.
    """
    ran = {
        row["jid"]: row
        for row in (*dependencies.to_pylist(), *jobs.to_pylist())
        if row["popped"] is not None
    }
    steps: dict[str, list[Row]] = {row["jid"]: row["steps"] for row in known.to_pylist()}
    own = set(jobs["jid"].to_pylist())
    for jid in own:
        steps.pop(jid, None)
    found = []
    # A dependency on the path ended before the job did, so it comes first.
    for row in sorted((ran[jid] for jid in own & set(ran)), key=lambda row: row["ended"]):
        if (before := _decisive(row, ran)) is not None:
            earlier = steps.get(before["jid"]) or [_step(before)]
            steps[row["jid"]] = [*earlier, _step(row)][-LONGEST:]
            found.append(_path(row, steps[row["jid"]]))
    return pa.Table.from_pylist(found, TABLES["gold/paths"].schema)


def _decisive(job: Row, ran: Mapping[str, Row]) -> Row | None:
    """Return the dependency that ended last, before the job began."""
    ended = [
        each
        for jid in job["depends"] or ()
        if (each := ran.get(jid))
        and each["ended"] <= job["popped"]
        and each["ended"] < job["ended"]
    ]
    return max(ended, key=lambda each: (each["ended"], each["jid"]), default=None)


def _step(job: Row) -> Row:
    return {name: job[name] for name in STEP.names}


def _path(job: Row, steps: list[Row]) -> Row:
    began: datetime = steps[0]["put"] or steps[0]["popped"]
    ended: datetime = job["ended"]
    seconds = max(0.0, (ended - began).total_seconds())
    running = sum(step["run"] or 0.0 for step in steps)
    day: date = ended.date()
    return {
        **{name: job[name] for name in ("namespace", "jid", "klass", "queue", "state")},
        "began": began,
        "ended": ended,
        "seconds": seconds,
        "running": running,
        "waiting": max(0.0, seconds - running),
        "depth": len(steps),
        "steps": steps,
        "date": day,
    }
