"""How far the lake's tables are behind its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.refresh import DERIVED, position_name
from aioqless.contrib.lake.schema import EVENTS
from aioqless.contrib.lake.snapshot import whole_of
from aioqless.contrib.lake.table_files import read_table


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

    def __add__(self, other: Freshness) -> Freshness:
        """Return how fresh the tables of two partitions of a namespace are."""
        since = [each for each in (self.missing_since, other.missing_since) if each]
        return Freshness(
            self.namespace,
            self.events + other.events,
            max(self.ended, other.ended),
            self.missing + other.missing,
            min(since, default=None),
        )


# Name, type, help of each metric.
_METRICS: Final = (
    ("aioqless_lake_events_total", "counter", "Archived events"),
    ("aioqless_lake_last_event_seconds", "gauge", "Time of the last archived event"),
    ("aioqless_lake_missing_events", "gauge", "Archived events that are not in every table"),
    ("aioqless_lake_lag_seconds", "gauge", "Age of the oldest event not in every table"),
)


def read_freshness(lake: Lake) -> list[Freshness]:
    """Return how fresh the tables are, by namespace; the partitions of one are added."""
    events = lake.snapshot(EVENTS)
    derived = [lake.snapshot(table) for table in DERIVED]
    found: dict[str, Freshness] = {}
    for namespace in sorted({each.namespace for each in events.all_files}):
        files = events.files(namespace)
        first = min(each.least["ordinal"] for each in files)
        name = position_name(namespace)
        position = max(first - 1, min(each.transaction(name) or 0 for each in derived))
        newer = [each for each in files if each.greatest["ordinal"] > position]
        behind = pc.field("ordinal") > position
        rows = read_table(events.storage, events.table, newer, ["ended"], behind)
        whole = whole_of(namespace)
        fresh = Freshness(
            whole,
            max(each.greatest["ordinal"] for each in files),
            max(each.greatest["ended"] for each in files),
            rows.num_rows,
            pc.min(rows["ended"]).as_py(),
        )
        found[whole] = found[whole] + fresh if whole in found else fresh
    return list(found.values())


def format_metrics(found: Sequence[Freshness], now: datetime | None = None) -> str:
    """Return metrics in Prometheus' text format."""
    now = now or datetime.now(UTC)
    lines = []
    for number, (name, kind, text) in enumerate(_METRICS):
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for each in found:
            values = (each.events, each.ended.timestamp(), each.missing, each.lag(now))
            lines.append(f'{name}{{namespace="{_escape(each.namespace)}"}} {values[number]:.15g}')
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
