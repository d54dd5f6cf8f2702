"""The tables follow the events: late ones correct what they touch, and nothing else is written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from aioqless.pipeline import refresh as module
from aioqless.pipeline.changes import changing
from aioqless.pipeline.lake import Lake, LakeError, Partition
from aioqless.pipeline.refresh import refresh
from aioqless.pipeline.schema import TABLES, Table

from .literal import event, events, run

DAY = 86_400
TODAY, TOMORROW = date(2026, 11, 21), date(2026, 11, 22)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", create=True)


def archive(spark: SparkSession, lake: Lake, batch: int, *rows: Mapping[str, Any]) -> None:
    """Put events into the lake as one batch of the archiver's."""
    with changing(lake, "archive ql") as changes:
        for namespace, day in {(row["namespace"], row["date"]) for row in rows}:
            staged = changes.folder()
            those = [row for row in rows if (row["namespace"], row["date"]) == (namespace, day)]
            events(spark, *those).drop("namespace", "date").coalesce(1).write.parquet(str(staged))
            (file,) = staged.glob("*.parquet")
            changes.put(file, Partition("bronze/events", namespace, day), f"batch={batch:08}.parquet")


def raw(lake: Lake, table: str) -> list[dict[str, Any]]:
    """The rows of a table as they are in the files, without Spark."""
    return list(ds.dataset(lake.path(table), format="parquet", partitioning="hive").to_table().to_pylist())


def contents(lake: Lake) -> dict[str, str]:
    """Every row of every table, by table; not how they are spread over files."""
    made = [name for name in TABLES if name.startswith(("silver", "gold"))]
    return {name: hashlib.sha256(repr(sorted(map(repr, raw(lake, name)))).encode()).hexdigest() for name in made if lake.partitions(name)}


def written(lake: Lake) -> dict[str, int]:
    """When each file was written."""
    return {str(file.relative_to(lake.root)): file.stat().st_mtime_ns for file in lake.root.rglob("*.parquet")}


def test_late_events_correct_what_they_touch_and_the_end_is_that_of_all_events_at_once(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    early = [
        event("a", run(0, 1, 2, "fail", group="g"), id="1-0"),
        event("b", run(0, 5, 9), id="2-0", tags=["x"]),
        event("other", run(0, 5, 9), id="1-0", namespace="{billing}"),
    ]
    late = [
        event("a", run(DAY - 60, DAY + 1, DAY + 2), id="3-0", date=TOMORROW),  # worked in the end: it waited over midnight
        event("c", run(20, 30, 40), id="4-0", date=TOMORROW, swept=True),  # told of a day late
        event("d", run(DAY + 5, DAY + 6, DAY + 7), id="5-0", date=TOMORROW, depends=["a", "b"]),
    ]
    archive(spark, lake, 1, *early)
    assert refresh(spark, lake).events == 2
    untouched = {name: at for name, at in written(lake).items() if "billing" in name}
    archive(spark, lake, 2, *late)
    told: list[str] = []
    assert (refreshed := refresh(spark, lake, told.append)).events == 1 and refreshed.days == 2
    assert told and untouched == {name: at for name, at in written(lake).items() if "billing" in name}

    jobs = {(row["namespace"], row["jid"]): row for row in raw(lake, "silver/jobs")}
    assert len(jobs) == len(raw(lake, "silver/jobs")) == 5
    assert [stage["what"] for stage in jobs["ql", "a"]["stages"]] == ["fail", "complete"]
    assert jobs["ql", "a"]["state"] == "complete" and str(jobs["ql", "a"]["date"]) == "2026-11-21"
    (waits,) = [row for row in raw(lake, "gold/times") if row["by"] == "" and row["kind"] == "wait" and str(row["date"]) == "2026-11-21"
                and row["namespace"] == "ql"]  # fmt: skip
    assert waits["count"] == 3  # a's first run, b and c

    at_once = Lake(tmp_path / "other", create=True)
    archive(spark, at_once, 1, *early, *late)
    refresh(spark, at_once)
    assert contents(at_once) == contents(lake)

    before = written(lake)
    assert refresh(spark, lake) == module.Refreshed() and written(lake) == before
    refresh(spark, lake, anew=True)
    assert contents(at_once) == contents(lake)


def test_a_refresh_that_is_killed_on_its_way_is_made_good_by_the_next(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [event("a", run(0, 1, 2)), event("b", run(0, 5, 9), id="2-0")]
    archive(spark, lake, 1, *rows[:1])
    refresh(spark, lake)
    archive(spark, lake, 2, *rows[1:])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(module._Refreshing, "gold", _interrupted)
        refresh(spark, lake)
    assert {row["jid"] for row in raw(lake, "silver/jobs")} == {"a", "b"} and len(raw(lake, "gold/counts")) > 0
    refresh(spark, lake)
    (total,) = [row for row in raw(lake, "gold/counts") if row["by"] == ""]
    assert total["completed"] == 2


def test_tables_of_an_older_version_are_made_anew_and_events_of_one_are_read(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = events(spark, event("a", run(0, 1, 2))).drop("namespace", "date", "data_size", "swept")
    with changing(lake, "archive ql") as changes:
        staged = changes.folder()
        older.coalesce(1).write.parquet(str(staged))
        changes.put(next(staged.glob("*.parquet")), Partition("bronze/events", "ql", TODAY), "batch=00000001.parquet")
    refresh(spark, lake)
    assert [row["swept"] for row in raw(lake, "silver/runs")] == [False]
    monkeypatch.setitem(TABLES, "gold/counts", Table(2, TABLES["gold/counts"].columns))
    assert refresh(spark, Lake(lake.root)).events == 1
    assert refresh(spark, Lake(lake.root)).events == 0


def test_two_do_not_refresh_at_once(spark: SparkSession, lake: Lake) -> None:
    with changing(lake, "tables"), pytest.raises(LakeError, match="is at work on tables"):
        refresh(spark, lake)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
