"""The tables follow the events: late ones correct what they touch, and nothing else is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from aioqless.contrib.lake import refresh as module
from aioqless.contrib.lake.lake import Lake, LakeError
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import TABLES, Table
from aioqless.contrib.lake.transaction import changing
from tests.contrib.lake.lakes import EARLY, LATE, archive, contents, copied, raw, written


@pytest.fixture(scope="module")
def early(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The first events, which an older version archived, and their tables."""
    lake = Lake(tmp_path_factory.mktemp("early") / "lake", create=True)
    archive(spark, lake, 1, *EARLY, without=("data_size", "swept"))
    assert refresh(spark, lake).events == 3
    return lake


def test_late_events_correct_what_they_touch_although_the_first_refresh_of_them_is_killed(
    spark: SparkSession, early: Lake, whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(early, tmp_path / "lake")
    archive(spark, lake, 2, *LATE)
    untouched = {name: at for name, at in written(lake).items() if "billing" in name}
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(module._Refreshing, "gold", _interrupted)
        refresh(spark, lake)
    jobs = {(row["namespace"], row["jid"]): row for row in raw(lake, "silver/jobs")}
    assert len(jobs) == len(raw(lake, "silver/jobs")) == 8 and contents(lake) != contents(whole)
    assert [stage["what"] for stage in jobs["ql", "a"]["stages"]] == ["fail", "complete"]
    assert jobs["ql", "a"]["state"] == "complete" and str(jobs["ql", "a"]["date"]) == "2026-11-21"

    told: list[str] = []
    assert (refreshed := refresh(spark, lake, told.append)).events == 1 and refreshed.days == 2
    assert told and untouched == {
        name: at for name, at in written(lake).items() if "billing" in name
    }
    (waits,) = [row for row in raw(lake, "gold/times") if row["by"] == "" and row["kind"] == "wait" and str(row["date"]) == "2026-11-21"
                and row["namespace"] == "ql"]  # fmt: skip
    assert waits["count"] == 3  # a's first run, b and c
    assert contents(lake) == contents(whole)

    before = written(lake)
    assert refresh(spark, lake) == module.Refreshed() and written(lake) == before


def test_events_archived_again_make_the_same_rows_of_silver_and_gold(
    spark: SparkSession, whole: Lake, tmp_path: Path
) -> None:
    lake = copied(whole, tmp_path / "lake")
    archive(spark, lake, 3, *LATE)
    assert refresh(spark, lake).events == 1
    assert contents(lake) == contents(whole)


def test_tables_of_an_older_version_are_made_anew_and_events_of_one_are_read(
    spark: SparkSession, early: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [row["swept"] for row in raw(early, "silver/runs")] == [False] * 3
    lake = copied(early, tmp_path / "lake")
    monkeypatch.setitem(TABLES, "gold/counts", Table(2, TABLES["gold/counts"].columns))
    assert refresh(spark, Lake(lake.root)).events == 3 and contents(lake) == contents(early)
    assert refresh(spark, Lake(lake.root)).events == 0


def test_two_do_not_refresh_at_once(spark: SparkSession, early: Lake) -> None:
    with changing(early, "tables"), pytest.raises(LakeError, match="is at work on tables"):
        refresh(spark, early)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
