"""silver/runs: one row for each attempt at a job."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.tables.columns import array, elements, seconds_between

_OF_EVENT = ("id", "jid", "klass", "queue", "tags", "priority", "namespace", "date")
_OF_RUN = ("worker", "fence", "put", "popped", "ended", "how", "failure_group", "message")


def runs(events: pa.Table) -> pa.Table:
    """Return the attempts of events, in the partitions of these.

    `attempt` counts from 1 within a stage.
    """
    rows, each = elements(events["runs"])
    of_event = events.select([*_OF_EVENT, "swept"]).take(pa.array(rows))
    of_run = {name: pc.struct_field(each, name) for name in _OF_RUN}
    positions = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return pa.table(
        {
            **{name: of_event[name] for name in _OF_EVENT},
            "attempt": pa.array(positions + 1),
            **of_run,
            "wait": seconds_between(of_run["put"], of_run["popped"]),
            "run": seconds_between(of_run["popped"], of_run["ended"]),
            "swept": pc.fill_null(array(of_event["swept"]), False),
        }
    )
