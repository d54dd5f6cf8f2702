"""The lake that most tests look at: eight jobs of three namespaces and two days; and what is in its
files, without Spark."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from aioqless.contrib.lake.lake import Lake, Partition
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.transaction import changing
from tests.contrib.lake.literal import event, events, run

DAY = 86_400
TOMORROW = date(2026, 11, 22)
SECRET = "<script>alert('a job')</script>"

EARLY = [
    event("a", run(0, 1, 2, "fail", group="g", message=SECRET), id="1-0"),
    event("b", run(0, 5, 9), id="2-0", tags=["x"], klass="Send"),
    event("other", run(0, 5, 9), id="1-0", namespace="{billing}"),
    event(
        "never", id="2-0", namespace="{billing}", what="fail", group="dependency", ended=DAY + 5
    ),  # on a day when nothing ran
    event("gone", id="1-0", namespace="cancelled"),
]
LATE = [
    event(
        "a", run(DAY - 60, DAY + 1, DAY + 2), id="3-0", date=TOMORROW
    ),  # worked in the end: it waited over midnight
    event(
        "c", run(20, 30, 40), id="4-0", date=TOMORROW, swept=True, tags=["x"]
    ),  # told of a day late
    event("d", run(DAY + 5, DAY + 6, DAY + 7), id="5-0", date=TOMORROW, depends=["a", "b"]),
    event(
        "e",
        run(DAY + 5, DAY + 6, DAY + 8, "fail", group="mail-SMTPError", message=SECRET),
        id="6-0",
        date=TOMORROW,
    ),
]


def archive(
    spark: SparkSession,
    lake: Lake,
    batch: int,
    *rows: Mapping[str, Any],
    without: tuple[str, ...] = (),
) -> None:
    """Put events into the lake as one batch of the archiver's, `without` some of the columns."""
    with changing(lake, "archive ql") as changes:
        for namespace, day in sorted({(row["namespace"], row["date"]) for row in rows}):
            staged = changes.folder()
            those = [row for row in rows if (row["namespace"], row["date"]) == (namespace, day)]
            events(spark, *those).drop("namespace", "date", *without).coalesce(1).write.parquet(
                str(staged)
            )
            (file,) = staged.glob("*.parquet")
            changes.put(
                file, Partition("bronze/events", namespace, day), f"batch={batch:08}.parquet"
            )


def raw(lake: Lake, table: str) -> list[dict[str, Any]]:
    """The rows of a table as they are in the files, without Spark."""
    return list(
        ds.dataset(lake.path(table), format="parquet", partitioning="hive").to_table().to_pylist()
    )


def contents(lake: Lake) -> dict[str, str]:
    """Every row of every table, by table; not how they are spread over files."""
    made = [name for name in TABLES if name.startswith(("silver", "gold"))]
    return {
        name: hashlib.sha256(repr(sorted(map(repr, raw(lake, name)))).encode()).hexdigest()
        for name in made
        if lake.partitions(name)
    }


def written(lake: Lake) -> dict[str, int]:
    """When each file was written."""
    return {
        str(file.relative_to(lake.root)): file.stat().st_mtime_ns
        for file in lake.root.rglob("*.parquet")
    }


def copied(lake: Lake, folder: Path) -> Lake:
    """The same lake in another folder, to be changed."""
    return Lake(shutil.copytree(lake.root, folder))
