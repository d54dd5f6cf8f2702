"""A refresh counts each event once, also after a kill and beside another refresh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from aioqless.contrib.lake import refresh as module
from aioqless.contrib.lake import refresh_tasks, table_files
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.refresh import DERIVED, Refreshed, refresh
from aioqless.contrib.lake.refresh_tasks import JOBS
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.snapshot import ConcurrentCommit, Snapshot
from aioqless.contrib.lake.table_files import read_table
from tests.contrib.lake.lakes import (
    DAY,
    EARLY,
    LATE,
    archive,
    contents,
    copied,
    files,
    no_spark,
    raw,
)
from tests.contrib.lake.literal import event, run


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The first events, and their tables."""
    lake = Lake(tmp_path_factory.mktemp("early") / "lake", create=True)
    archive(lake, *EARLY)
    assert refresh(lake, no_spark).events == 5
    return lake


def versions(lake: Lake) -> dict[str, int]:
    return {name: lake.snapshot(name).version for name in DERIVED}


def stop_at(monkeypatch: pytest.MonkeyPatch, table: str, action: Callable[[], None]) -> None:
    """Do something before a table is committed."""
    commit = Snapshot.commit

    def stopping(self: Snapshot, *arguments: Any) -> Snapshot:
        if self.table.name == table:
            action()
        return commit(self, *arguments)

    monkeypatch.setattr(Snapshot, "commit", stopping)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("table", DERIVED)
def test_refresh_that_was_killed_before_any_commit_is_continued(
    early: Lake, whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        stop_at(patched, table, interrupt)
        refresh(lake, no_spark)
    assert contents(lake) != contents(whole)
    archive(lake, event("later", run(0, 1, 2), namespace="{billing}"))
    refresh(lake, no_spark)
    archive(
        whole_copy := copied(whole, tmp_path / "whole"),
        event("later", run(0, 1, 2), namespace="{billing}"),
    )
    refresh(whole_copy, no_spark)
    assert contents(lake) == contents(whole_copy)


def test_late_events_change_only_the_files_of_the_days_and_jobs_they_touch(
    early: Lake, whole: Lake, tmp_path: Path
) -> None:
    lake = copied(early, tmp_path / "lake")
    before = files(lake)
    archive(lake, *LATE)
    today, tomorrow = date(2026, 11, 21), date(2026, 11, 22)
    assert refresh(lake, no_spark) == Refreshed(4, {("ql", today), ("ql", tomorrow)})
    assert {each for each in before if "billing" in each or "/runs/" in each} <= files(lake)
    assert contents(lake) == contents(whole)
    jobs = {(row.namespace, row.jid): row for row in raw(lake, "silver/jobs")}
    assert len(jobs) == len(raw(lake, "silver/jobs")) == 8
    assert [stage.what for stage in jobs["ql", "a"].stages] == ["fail", "complete"]
    assert (jobs["ql", "a"].state, jobs["ql", "a"].date) == ("complete", today)


def test_refresh_without_new_events_commits_nothing(whole: Lake) -> None:
    before = versions(whole)
    assert refresh(whole, no_spark) == Refreshed() and versions(whole) == before


def test_two_refreshes_at_once_count_no_event_twice(
    early: Lake, whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)
    with monkeypatch.context() as patched:

        def refresh_meanwhile() -> None:
            patched.undo()
            refresh(lake, no_spark)

        stop_at(patched, "gold/times", refresh_meanwhile)
        refresh(lake, no_spark)
    assert contents(lake) == contents(whole)


def test_refresh_gives_up_when_others_always_commit_first(
    early: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)

    def conflict() -> None:
        raise ConcurrentCommit("another process")

    stop_at(monkeypatch, "gold/times", conflict)
    with pytest.raises(ConcurrentCommit):
        refresh(lake, no_spark)


def test_tasks_of_spark_make_the_same_rows(
    spark: SparkSession, early: Lake, whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioqless.contrib.lake.refresh_tasks.SHARE", 2)
    monkeypatch.setattr(module, "_SCANNED_HERE", 0)
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)
    refresh(lake, lambda: spark, local_events=0)
    assert contents(lake) == contents(whole)
    anew = Lake(tmp_path / "anew", create=True)
    archive(anew, *EARLY, *LATE)
    monkeypatch.setattr(module, "ROUND", 3)
    refresh(anew, lambda: spark, local_events=0)
    assert contents(anew) == contents(whole)


def test_tables_of_an_older_version_are_rebuilt(
    whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(whole, tmp_path / "lake")
    times = TABLES["gold/times"]
    monkeypatch.setitem(TABLES, "gold/times", replace(times, version=2))
    assert lake.outdated() == ["gold/times"]
    assert refresh(lake, no_spark).events == 9 and lake.outdated() == []
    assert contents(lake) == contents(whole)
    assert refresh(lake, no_spark, rebuild=True).events == 9
    assert contents(lake) == contents(whole)


def test_numbers_of_rejected_entries_are_skipped(tmp_path: Path, whole: Lake) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, *EARLY)
    archive(lake, *LATE, skipped=100)
    refresh(lake, no_spark)
    assert contents(lake) == contents(whole)


def test_reader_of_a_version_finds_its_files_after_a_refresh(early: Lake, tmp_path: Path) -> None:
    lake = copied(early, tmp_path / "lake")
    pinned = DeltaTable(lake.storage.within("gold/counts").url)
    rows = pinned.to_pyarrow_table().sort_by("runs")
    archive(lake, *LATE, event("f", run(DAY, DAY + 1, DAY + 2)))
    refresh(lake, no_spark)
    assert pinned.to_pyarrow_table().sort_by("runs") == rows


@pytest.mark.parametrize("rows_at_once", [1, 3, 500_000])
def test_jobs_are_found_in_their_files(
    whole: Lake, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(refresh_tasks, "LOOKED_UP", rows_at_once)
    monkeypatch.setattr(table_files, "LOOKED_UP", rows_at_once)
    snapshot = whole.snapshot(JOBS)
    data_files = snapshot.files("ql")
    assert len(data_files) > 1
    rows = {file.path: read_table(snapshot.storage, snapshot.table, [file]) for file in data_files}
    expected = {jid: path for path, each in rows.items() for jid in each["jid"].to_pylist()}
    jids = pa.array([*expected, "none"])
    places = refresh_tasks.find_places(snapshot.storage, JOBS, data_files, jids)
    assert {jid: file.path for jid, file in places.items()} == expected
    assert refresh_tasks.find_places(snapshot.storage, JOBS, data_files, pa.array(["none"])) == {}
    some = pa.array(sorted(expected)[::2])
    read = partial(table_files.read_jobs, snapshot.storage, snapshot.table, data_files, some)
    assert set(read(["jid"])["jid"].to_pylist()) == set(some.to_pylist())
    assert set(read(["jid"], others=True)["jid"].to_pylist()) == set(expected) - set(
        some.to_pylist()
    )


def test_a_refresh_without_new_events_opens_each_table_once(
    whole: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    open_table = Lake._open  # noqa: SLF001

    def count(self: Lake, name: str, version: int | None = None) -> DeltaTable | None:
        names.append(name)
        return open_table(self, name, version)

    monkeypatch.setattr(Lake, "_open", count)
    assert refresh(whole, no_spark).events == 0
    assert sorted(names) == sorted(TABLES)
