"""How long jobs waited and ran and how they ended, over a period.

The rows of gold/times and gold/counts are merged by grouping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lake_reader import read_rows
from aioqless.contrib.lake.snapshot import DataFile
from aioqless.contrib.lake.tables.aggregates import MERGED, described, merged
from aioqless.contrib.lake.tables.columns import array, replace
from aioqless.contrib.lake.tables.counts import NUMBERS, merge
from aioqless.contrib.lake.tables.groups import known

OF_TIMES: Final = (
    *("count", "mean", "variance", "least", "most", "p50", "p90", "p95", "p99"),
    "bins",
)
_DAY: Final = timedelta(days=1)
_MAX_DAYS: Final = 36_500


@dataclass(frozen=True)
class Period:
    """Days in UTC, the first and the last included."""

    first: date
    last: date

    @property
    def before(self) -> Period:
        """The period of the same length that ends the day before."""
        return Period(self.first - (self.last - self.first) - _DAY, self.first - _DAY)

    @property
    def start(self) -> datetime:
        """The beginning of the first day."""
        return datetime.combine(self.first, time.min, UTC)

    @property
    def end(self) -> datetime:
        """The end of the last day."""
        return datetime.combine(self.last + _DAY, time.min, UTC)

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def parse_period(since: str, until: str = "today") -> Period:
    """Return the days from `since` to `until`.

    Args:
        since: `2026-11-21`, `today`, `yesterday`, or `7d`, which is today and the six days before.
        until: The last day, in the same form except that `7d` is the day six days ago.

    Raises:
        ValueError: One of them is no day, or the last day is before the first.
    """
    period = Period(_parse_day("since", since), _parse_day("until", until))
    if period.last < period.first:
        raise ValueError(f"--until {period.last} is before --since {period.first}")
    return period


def _parse_day(option: str, text: str) -> date:
    today = datetime.now(UTC).date()
    if text in ("today", "yesterday"):
        return today - (_DAY if text == "yesterday" else timedelta())
    if re.fullmatch(r"[1-9][0-9]{0,4}d", text, re.ASCII) and int(text[:-1]) < _MAX_DAYS:
        return today - timedelta(days=int(text[:-1]) - 1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--{option} {text!r} is no day; give 2026-11-21, today, yesterday or 7d (days are UTC)"
        ) from None


def list_files(
    lake: Lake, table: str, period: Period, namespace: str | None = None
) -> list[DataFile]:
    """List the files of a table in a period, of one namespace with its partitions, or of all."""
    return [each for each in lake.snapshot(table).files(within=namespace) if each.date in period]


def read_statistics(
    lake: Lake,
    period: Period,
    by: str,
    namespace: str | None = None,
    *,
    queue: str | None = None,
    top: int | None = None,
) -> list[dict[str, Any]]:
    """Return one row for each group, the busiest first.

    A row has the parts of `by`, the counts, and the times of `wait`, `run` and `spent`.

    Args:
        lake: The lake.
        period: The days.
        by: The grouping, such as `queue,klass`.
        namespace: Only jobs of this namespace.
        queue: Only jobs of this queue, which `by` must include.
        top: The maximum number of groups. The other ones are one row, in which the last part of
            `by` is None, and `others` their number.

    Raises:
        ValueError: No such grouping is kept.
    """
    grouping = known(by)
    parts = [part for part in grouping.split(",") if part]
    where = None if queue is None else pc.field("queue") == queue
    counts = read_counts(lake, period, grouping, parts, namespace, where)
    times = read_times(lake, period, grouping, [*parts, "kind"], namespace, where)
    others, groups = 0, counts.num_rows
    if top is not None and counts.num_rows > top + 1:
        busiest = counts.sort_by([("runs", "descending")]).slice(0, top)[parts[-1]]
        counts = merge(_blank_others(counts, parts[-1], busiest), parts)
        times = merged(_blank_others(times, parts[-1], busiest), [*parts, "kind"])
        others = groups - top
    found = {
        _key(row, parts): _parts(row, parts) | {name: row[name] for name in NUMBERS}
        for row in counts.to_pylist()
    }
    for row in described(times).select([*parts, "kind", *OF_TIMES]).to_pylist():
        group = found.setdefault(_key(row, parts), _parts(row, parts) | dict.fromkeys(NUMBERS, 0))
        group[row["kind"]] = {name: row[name] for name in OF_TIMES} | {"bins": dict(row["bins"])}
    rows = [row for row in found.values() if any(row[name] for name in NUMBERS)]
    for row in rows:
        if others and row[parts[-1]] is None:
            row["others"] = others
    return sorted(rows, key=lambda row: ("others" in row, -row["runs"]))


def read_times(
    lake: Lake,
    period: Period,
    grouping: str,
    keys: Sequence[str],
    namespace: str | None = None,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Return the times of a grouping in a period, merged into one cell for each group of `keys`."""
    return read_rows(
        lake,
        "gold/times",
        list_files(lake, "gold/times", period, namespace),
        [*keys, *MERGED],
        _and(pc.field("grouping") == grouping, where),
        lambda rows: merged(rows, keys),
    )


def read_counts(
    lake: Lake,
    period: Period,
    grouping: str,
    keys: Sequence[str],
    namespace: str | None = None,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Return the counts of a grouping in a period, added up for each group of `keys`."""
    # Groups need a column; the grouping is the same in all rows.
    names = [*keys] or ["grouping"]
    return read_rows(
        lake,
        "gold/counts",
        list_files(lake, "gold/counts", period, namespace),
        [*names, *NUMBERS],
        _and(pc.field("grouping") == grouping, where),
        lambda rows: merge(rows, names),
    )


def _and(one: pc.Expression, other: pc.Expression | None) -> pc.Expression:
    return one if other is None else one & other


def _blank_others(rows: pa.Table, part: str, kept: pa.ChunkedArray) -> pa.Table:
    """Return rows with null in a column wherever its value is not among those kept."""
    values = array(rows[part])
    blanked = pc.if_else(pc.is_in(values, array(kept)), values, pa.scalar(None, pa.string()))
    return replace(rows, **{part: blanked})


def _key(row: Mapping[str, Any], parts: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[part] for part in parts)


def _parts(row: Mapping[str, Any], parts: Sequence[str]) -> dict[str, Any]:
    return {part: row[part] for part in parts}
