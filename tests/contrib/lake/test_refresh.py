"""A refresh counts each event once, also after a kill and beside another refresh."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from aioqless.contrib.lake import refresh as module
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import ConcurrentCommit, OpenTable
from aioqless.contrib.lake.reconciliation import check
from aioqless.contrib.lake.refresh import DERIVED, Refreshed, refresh
from aioqless.contrib.lake.statistics import ALL_DAYS
from tests.contrib.lake.lakes import (
    EARLY,
    LATE,
    archive,
    contents,
    copied,
    files,
    random_events,
)
from tests.contrib.lake.literal import event, run


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The first events, and their tables."""
    lake = Lake(tmp_path_factory.mktemp("early") / "lake", create=True)
    archive(lake, *EARLY)
    assert refresh(lake).events == 5
    assert versions(lake)["gold/klasses"] == 3, "one commit for each namespace"
    return lake


def versions(lake: Lake) -> dict[str, int]:
    return {name: lake.table(name).version for name in DERIVED}


def stop_at(monkeypatch: pytest.MonkeyPatch, table: str, action: Callable[[], None]) -> None:
    """Do something before a table is committed."""
    replace = OpenTable.replace

    def stopping(self: OpenTable, *arguments: Any) -> None:
        if self.table.name == table:
            action()
        replace(self, *arguments)

    monkeypatch.setattr(OpenTable, "replace", stopping)


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
        refresh(lake)
    assert contents(lake) != contents(whole)
    archive(lake, event("later", run(0, 1, 2), namespace="{billing}"))
    refresh(lake)
    archive(
        whole_copy := copied(whole, tmp_path / "whole"),
        event("later", run(0, 1, 2), namespace="{billing}"),
    )
    refresh(whole_copy)
    assert contents(lake) == contents(whole_copy)


def test_new_events_change_only_the_files_of_their_days(
    early: Lake, whole: Lake, tmp_path: Path
) -> None:
    lake = copied(early, tmp_path / "lake")
    before = files(lake)
    pinned = DeltaTable(lake.storage.within("gold/klasses").url)
    rows = pinned.to_pyarrow_table().sort_by("runs")
    archive(lake, *LATE)
    assert refresh(lake) == Refreshed(4, {("ql", date(2026, 11, 22))})
    assert before < files(lake)
    assert contents(lake) == contents(whole)
    assert pinned.to_pyarrow_table().sort_by("runs") == rows, "readers keep their version"


def test_events_of_many_kinds_make_the_same_tables_at_once_and_in_parts(tmp_path: Path) -> None:
    every = random_events(random.Random(1), 90)
    parts, at_once = (Lake(tmp_path / name, create=True) for name in ("parts", "once"))
    for cut in (every[:20], every[20:21], every[21:60], every[60:]):
        archive(parts, *cut)
        refresh(parts)
    archive(at_once, *every)
    refresh(at_once)
    assert contents(parts) == contents(at_once)
    assert check(parts) == []


def test_two_refreshes_at_once_count_no_event_twice(
    early: Lake, whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)
    with monkeypatch.context() as patched:

        def refresh_meanwhile() -> None:
            patched.undo()
            refresh(Lake(lake.url))

        stop_at(patched, "gold/tags", refresh_meanwhile)
        refresh(lake)
    assert contents(lake) == contents(whole)


def test_two_refreshes_that_start_at_once_end_well_with_one_commit_of_each_table(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, event("a", run(0, 1, 2)))
    barrier = threading.Barrier(2)

    def start() -> Refreshed:
        own = Lake(lake.url)
        barrier.wait(30)
        return refresh(own)

    with ThreadPoolExecutor(2) as threads:
        done = [each.result() for each in [threads.submit(start) for _ in range(2)]]
    assert max(each.events for each in done) == 1
    found = versions(lake)
    assert {found[name] for name in DERIVED[:-1]} <= {1, 2}, "one of each refresh, at most"


def test_refresh_puts_no_older_rows_in_the_place_of_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, at_once = (Lake(tmp_path / name, create=True) for name in ("lake", "once"))
    first, early = (
        [event(jid, run(0, 1, 2), namespace=namespace) for namespace in ("a", "b")]
        for jid in ("first", "early")
    )
    late = event("late", run(0, 1, 3), namespace="b")
    archive(lake, *first)
    refresh(lake)
    archive(lake, *early)
    replace, calls = OpenTable.replace, list[str]()
    is_half_done, may_finish = threading.Event(), threading.Event()

    def refresh_second() -> None:
        other = Lake(lake.url)
        archive(other, late)
        work = module._Refresh(other.upgrade(), "b", (), is_first=False)  # noqa: SLF001
        work.run(None, lambda _: None, 0)

    another = threading.Thread(target=refresh_second)

    def act(self: OpenTable, *arguments: Any) -> None:
        if threading.current_thread() is another:
            if self.table.name == DERIVED[1]:
                is_half_done.set()
                assert may_finish.wait(30)
        else:
            calls.append(self.table.name)
            if len(calls) == 1:
                another.start()
                assert is_half_done.wait(30)
            if len(calls) == len(DERIVED) + 1:
                may_finish.set()
                another.join()
            if len(calls) == len(DERIVED) + 2:
                raise KeyboardInterrupt
        replace(self, *arguments)

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(OpenTable, "replace", act)
        refresh(lake)
    refresh(Lake(lake.url))
    archive(at_once, *first, *early, late)
    refresh(at_once)
    assert contents(lake) == contents(at_once)


def test_refresh_gives_up_when_others_always_commit_first(
    early: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)

    def conflict() -> None:
        raise ConcurrentCommit("another process")

    stop_at(monkeypatch, "gold/tags", conflict)
    with pytest.raises(ConcurrentCommit):
        refresh(lake)


def test_tasks_of_spark_make_the_same_rows(
    spark: SparkSession, early: Lake, whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 1)
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE)
    refresh(lake, open_session=lambda: spark)
    assert contents(lake) == contents(whole)
    anew = Lake(tmp_path / "anew", create=True)
    archive(anew, *EARLY, *LATE)
    refresh(anew, open_session=lambda: spark)
    assert contents(anew) == contents(whole)


def test_table_whose_folder_was_deleted_is_made_again(whole: Lake, tmp_path: Path) -> None:
    lake = copied(whole, tmp_path / "lake")
    shutil.rmtree(lake.storage.within("silver/runs").url)
    Lake(lake.url, create=True)  # as an archiver does that starts before the refresh
    opened = Lake(lake.url)
    refresh(opened)
    assert contents(opened) == contents(whole)


def test_few_events_are_computed_without_spark(
    spark: SparkSession, early: Lake, whole: Lake, tmp_path: Path
) -> None:
    started: list[int] = []

    def start() -> SparkSession:
        started.append(1)
        return spark

    events = sum(each.rows for each in early.table("bronze/events").files("ql"))
    for most, by_spark in ((events, False), (events - 1, True)):
        lake = Lake(tmp_path / str(most), create=True)
        archive(lake, *EARLY)
        refresh(lake, open_session=start, local_events=most)
        assert contents(lake) == contents(early) and bool(started) == by_spark


def test_days_are_computed_again_when_that_is_asked_for(whole: Lake, tmp_path: Path) -> None:
    lake = copied(whole, tmp_path / "lake")
    klasses = lake.table("gold/klasses")
    klasses.delete(
        {each.partition for each in klasses.files("ql")}
    )  # as if another program had deleted them
    today, tomorrow = date(2026, 11, 21), date(2026, 11, 22)
    assert refresh(lake, rebuilt=[tomorrow]) == Refreshed(0, {("ql", tomorrow)})
    assert {each.date for each in lake.table("gold/klasses").files("ql")} == {tomorrow}
    assert ("ql", today) in refresh(lake, rebuilt=ALL_DAYS).days
    assert contents(lake) == contents(whole)


def test_numbers_of_rejected_entries_are_skipped(tmp_path: Path, whole: Lake) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, *EARLY)
    archive(lake, *LATE, skipped=100)
    refresh(lake)
    assert contents(lake) == contents(whole)


def test_a_refresh_without_new_events_makes_few_requests(
    stored_lake: str, count_requests: Callable[[], int]
) -> None:
    lake = Lake(stored_lake, create=True)
    for number in range(3):
        archive(lake, event("a", run(0, 1, 2), id=f"{number}-0"))
        refresh(lake)
    known, before = versions(lake), count_requests()
    opened = Lake(stored_lake)
    assert refresh(opened) == Refreshed()
    assert count_requests() - before <= 40
    assert versions(opened) == known, "nothing was committed"
