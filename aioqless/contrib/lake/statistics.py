"""How long jobs waited and ran and how they ended, over some days: the tables `times` and `counts`
merged by what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lake_reader import files_since, read_rows
from aioqless.contrib.lake.tables.aggregates import MERGED, described, merged
from aioqless.contrib.lake.tables.counts import NUMBERS, merge
from aioqless.contrib.lake.tables.groups import known

OF_TIMES: Final = (
    *("count", "mean", "variance", "least", "most", "p50", "p90", "p95", "p99"),
    "bins",
)


def since(text: str) -> date:
    """The first day of a span: `2026-11-21`, `today`, or `7d`, which is today and the six days
    before. Raises ValueError."""
    today = datetime.now(UTC).date()
    if text == "today":
        return today
    if text.endswith("d") and text[:-1].isdecimal() and 0 < int(text[:-1]) < 36_500:
        return today - timedelta(days=int(text[:-1]) - 1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--since {text!r} is no day: give 2026-11-21, today, or 7d; statistics are kept by the day, of UTC"
        ) from None


def statistics(
    lake: Lake, first: date, by: str, namespace: str | None = None
) -> list[dict[str, Any]]:
    """Return one row for each group, the busiest first: the parts of `by`, the counts, and `wait`,
    `run` and `spent` with their times.

    Raises:
        ValueError: No such grouping is kept.
    """
    grouping = known(by)
    parts = [part for part in grouping.split(",") if part]
    counts = read_counts(lake, first, grouping, parts, namespace)
    found = {
        _key(row, parts): _parts(row, parts) | {name: row[name] for name in NUMBERS}
        for row in counts.to_pylist()
    }
    times = read_times(lake, first, grouping, [*parts, "kind"], namespace)
    for row in described(times).select([*parts, "kind", *OF_TIMES]).to_pylist():
        group = found.setdefault(_key(row, parts), _parts(row, parts) | dict.fromkeys(NUMBERS, 0))
        group[row["kind"]] = {name: row[name] for name in OF_TIMES} | {"bins": dict(row["bins"])}
    return sorted(
        (row for row in found.values() if any(row[name] for name in NUMBERS)),
        key=lambda row: -row["runs"],
    )


def read_times(
    lake: Lake, first: date, grouping: str, keys: Sequence[str], namespace: str | None = None
) -> pa.Table:
    """Return the times of a grouping from a day on, merged into one cell for each group of
    `keys`."""
    files = files_since(lake, "gold/times", first, namespace)
    keys = ["grouping", *keys]
    return read_rows(
        lake,
        "gold/times",
        files,
        [*keys, *MERGED],
        pc.field("grouping") == grouping,
        lambda rows: merged(rows, keys),
    )


def read_counts(
    lake: Lake, first: date, grouping: str, keys: Sequence[str], namespace: str | None = None
) -> pa.Table:
    """Return the counts of a grouping from a day on, added up for each group of `keys`."""
    files = files_since(lake, "gold/counts", first, namespace)
    keys = ["grouping", *keys]
    return read_rows(
        lake,
        "gold/counts",
        files,
        [*keys, *NUMBERS],
        pc.field("grouping") == grouping,
        lambda rows: merge(rows, keys),
    )


def _key(row: Mapping[str, Any], parts: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[part] for part in parts)


def _parts(row: Mapping[str, Any], parts: Sequence[str]) -> dict[str, Any]:
    return {part: row[part] for part in parts}
