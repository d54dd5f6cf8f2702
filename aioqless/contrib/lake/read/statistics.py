"""How long jobs waited and ran and how they ended, over a period.

The rows of gold are added up by group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.period import Period
from aioqless.contrib.lake.read.database import fetch, open_lake_database, read_sql
from aioqless.contrib.lake.schema import COUNTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARTS: Final = ("queue", "klass", "tag", "worker")


def known(by: str) -> str:
    """Return the grouping that text such as `klass,queue` names.

    Raises:
        ValueError: There is none.
    """
    parts = [part.strip() for part in by.split(",") if part.strip()]
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(f"{unknown[0]!r} is nothing to group by; there are {', '.join(PARTS)}")
    if "worker" in parts and {"klass", "tag"} & {*parts}:
        raise ValueError(f"by {by} nothing is kept; by worker there are worker and queue,worker")
    return ",".join(part for part in PARTS if part in parts)


def find_table(parts: Sequence[str]) -> str:
    """Return the table of gold that has these columns."""
    return "workers" if "worker" in parts else "tags" if "tag" in parts else "klasses"


def read_statistics(
    lake: Lake, period: Period, by: str, namespace: str | None = None
) -> list[dict[str, Any]]:
    """Return one row for each group, the busiest first.

    A row has the parts of `by`, the counts, and the times of `wait`, `run` and `spent`.

    Args:
        lake: The lake.
        period: The days.
        by: The grouping, such as `queue,klass`.
        namespace: Only jobs of this namespace.

    Raises:
        ValueError: No such grouping is kept.
    """
    parts = [part for part in known(by).split(",") if part]
    table, dates = find_table(parts), (period.first, period.last)
    with open_lake_database(lake, [table], namespace=namespace, dates=dates) as database:
        found = add_up(database, table, parts)
    return [dict(zip(parts, row.pop("key"), strict=True)) | row for row in found]


def add_up(
    database: DuckDBPyConnection,
    table: str,
    keys: Sequence[str],
    where: str = "true",
    values: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the sums and times of groups of rows of gold, the group with most runs first.

    Args:
        database: A database with the table.
        table: The table.
        keys: Expressions by which rows are grouped; their values are `key` of the result.
        where: Which rows.
        values: Values of parameters in these.
    """
    text = read_sql(
        "statistics",
        key=f"[{', '.join(keys)}]" if keys else "[]::VARCHAR[]",
        table=table,
        where=where,
        sums=", ".join(f"sum({name})::BIGINT AS {name}" for name in COUNTS),
    )
    rows = fetch(database, f"SELECT * FROM ({text}) ORDER BY runs DESC, key", values)
    return [row | (row.pop("cells") or {}) for row in rows if any(row[name] for name in COUNTS)]
