"""How far the lake's tables are behind its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import whole_of
from aioqless.contrib.lake.position import refreshed_name
from aioqless.contrib.lake.schema import DERIVED, EVENTS


@dataclass(frozen=True)
class Freshness:
    """How fresh the tables of a namespace are.

    Attributes:
        namespace: The namespace.
        events: The number of archived events.
        ended: When the job's stage of the last archived events ended.
        missing: The number of events that are not in every table.
        missing_since: When the first of them ended.
    """

    namespace: str
    events: int
    ended: datetime
    missing: int
    missing_since: datetime | None

    def lag(self, now: datetime) -> float:
        """Return the age in seconds of the oldest event that is not in every table."""
        if self.missing_since is None:
            return 0.0
        return max(0.0, (now - self.missing_since).total_seconds())


# Name, type, help of each metric.
_METRICS: Final = (
    ("aioqless_lake_events_total", "counter", "Archived events"),
    ("aioqless_lake_last_event_seconds", "gauge", "Time of the last archived event"),
    ("aioqless_lake_missing_events", "gauge", "Archived events that are not in every table"),
    ("aioqless_lake_lag_seconds", "gauge", "Age of the oldest event not in every table"),
)


def read_freshness(lake: Lake) -> list[Freshness]:
    """Return how fresh the tables are, by namespace; the partitions of one are added."""
    events = lake.table(EVENTS)
    derived = [lake.table(table) for table in DERIVED]
    found = []
    for whole in sorted({whole_of(each.namespace) for each in events.all_files}):
        files = events.files(within=whole)
        last = Counter[str]()
        for each in files:
            last[each.namespace] = max(last[each.namespace], each.greatest["ordinal"])
        positions = {
            name: min(each.transaction(refreshed_name(name)) or 0 for each in derived)
            for name in last
        }
        newer = {
            each.partition for each in files if each.greatest["ordinal"] > positions[each.namespace]
        }
        behind = f"ordinal > {min(positions.values())}"
        rows = events.read(newer, ["namespace", "ordinal", "ended"], behind).to_pylist()
        missing = [row["ended"] for row in rows if row["ordinal"] > positions[row["namespace"]]]
        found.append(
            Freshness(
                whole,
                last.total(),
                max(each.greatest["ended"] for each in files),
                len(missing),
                min(missing, default=None),
            )
        )
    return found


def format_metrics(found: Sequence[Freshness], now: datetime) -> str:
    """Return metrics in Prometheus' text format."""
    lines = []
    for number, (name, kind, text) in enumerate(_METRICS):
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for each in found:
            values = (each.events, each.ended.timestamp(), each.missing, each.lag(now))
            lines.append(f'{name}{{namespace="{_escape(each.namespace)}"}} {values[number]:.15g}')
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
