"""A refresh counts each event once, also after a kill and beside another refresh."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from aioqless.contrib.lake import refresh as module
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import ConcurrentCommit, OpenTable
from aioqless.contrib.lake.period import ALL_DAYS
from aioqless.contrib.lake.read.reconciliation import check
from aioqless.contrib.lake.refresh import Refreshed, refresh
from aioqless.contrib.lake.schema import DERIVED, EVENTS
from aioqless.contrib.lake.spark import transform
from tests.contrib.lake.lakes import (
    EARLY,
    LATE,
    TODAY,
    TOMORROW,
    archive,
    contents,
    copied,
    event,
    fill,
    open_session,
    random_events,
    run,
)


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The first events, and their tables."""
    lake = Lake(tmp_path_factory.mktemp("early") / "lake", create=True)
    archive(lake, *EARLY)
    assert refresh(lake, open_session).events == 5
    assert versions(lake)["gold/klasses"] == 1, "one commit for all namespaces"
    return lake


@pytest.fixture
def lake(early: Lake, tmp_path: Path) -> Lake:
    """The tables of the first events, and the later events, which aren't in the tables.

    Between them are numbers of rejected entries, which every refresh skips.
    """
    lake = copied(early, tmp_path / "lake")
    archive(lake, *LATE, skipped=100)
    return lake


def versions(lake: Lake) -> dict[str, int]:
    return {name: lake.table(name).version for name in DERIVED}


def stop_at(monkeypatch: pytest.MonkeyPatch, table: str, action: Callable[[], None]) -> None:
    """Do something before a table is committed."""
    commit = OpenTable.commit

    def stopping(self: OpenTable, *arguments: Any) -> None:
        if self.table.name == table:
            action()
        commit(self, *arguments)

    monkeypatch.setattr(OpenTable, "commit", stopping)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "table", [DERIVED[-1], *(pytest.param(each, marks=pytest.mark.long) for each in DERIVED[:-1])]
)
def test_refresh_that_was_killed_before_any_commit_is_continued(
    lake: Lake, whole: Lake, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    known = versions(lake)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        stop_at(patched, table, interrupt)
        refresh(lake, open_session)
    changed = {name for name, version in versions(lake).items() if version > known[name]}
    assert changed == {*DERIVED[: DERIVED.index(table)]}
    refresh(lake, open_session)
    assert contents(lake) == contents(whole)


def test_new_events_change_only_the_files_of_their_days_and_rejected_entries_none(
    early: Lake, lake: Lake, whole: Lake
) -> None:
    def files(lake: Lake) -> set[str]:
        return {f"{name}/{each.path}" for name in DERIVED for each in lake.table(name).all_files}

    pinned = DeltaTable(lake.storage.within("gold/klasses").url)
    rows = pinned.to_pyarrow_table().sort_by("runs")
    assert refresh(lake, open_session) == Refreshed(4, {("ql", TOMORROW)})
    assert files(early) < files(lake)
    assert contents(lake) == contents(whole)
    assert pinned.to_pyarrow_table().sort_by("runs") == rows, "readers keep their version"


def test_events_of_many_kinds_make_the_same_tables_by_many_tasks_and_in_parts_by_one(
    filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, at_once = random_events(random.Random(1), 40), Lake(tmp_path / "once", create=True)
    fill(filled, *every)
    monkeypatch.setattr(transform, "_FEW_ROWS", 0)
    fill(at_once, *EARLY, *LATE, *every)
    assert contents(filled) == contents(at_once)
    assert check(filled) == []


def test_two_refreshes_at_once_count_no_event_twice(
    lake: Lake, whole: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def refresh_meanwhile() -> None:
            patched.undo()
            refresh(Lake(lake.url), open_session)

        stop_at(patched, "gold/tags", refresh_meanwhile)
        refresh(lake, open_session)
    assert contents(lake) == contents(whole)


def test_refresh_puts_no_older_rows_in_the_place_of_anothers(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that read the events before the last one came, and the tables in the middle of it."""
    older = Lake(lake.url).table(EVENTS)
    archive(lake, event("last", run(0, 1, 2)))
    works: list[Any] = []

    def start() -> None:
        opened = {**Lake(lake.url).upgrade(), EVENTS: older}
        plans = [module._Plan(opened, "ql", (), is_first=False)]  # noqa: SLF001
        works.append((opened, plans, open_session))

    stop_at(monkeypatch, DERIVED[1], start)
    refresh(lake, open_session)
    with pytest.raises(ConcurrentCommit, match="another refresh is further"):
        module._run(*works[-1])  # noqa: SLF001


@pytest.mark.long
def test_refresh_gives_up_when_others_always_commit_first(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict() -> None:
        raise ConcurrentCommit("another process")

    stop_at(monkeypatch, "gold/tags", conflict)
    with pytest.raises(ConcurrentCommit):
        refresh(lake, open_session)


@pytest.mark.parametrize("is_made", [False, pytest.param(True, marks=pytest.mark.long)])
def test_tables_whose_folders_were_deleted_are_made_again(
    filled: Lake, whole: Lake, is_made: bool
) -> None:
    for table in ("silver/runs", "gold/klasses"):
        shutil.rmtree(filled.storage.within(table).url)
    if is_made:
        Lake(filled.url, create=True)  # as an archiver does that starts before the refresh
    opened = Lake(filled.url)
    refresh(opened, open_session)
    assert contents(opened) == contents(whole)


def test_days_are_computed_again_when_that_is_asked_for(filled: Lake, whole: Lake) -> None:
    klasses = filled.table("gold/klasses")
    klasses.delete({each.partition for each in klasses.files("ql")})  # as by another program
    assert refresh(filled, open_session, rebuilt=[TOMORROW]) == Refreshed(0, {("ql", TOMORROW)})
    assert {each.date for each in filled.table("gold/klasses").files("ql")} == {TOMORROW}
    assert ("ql", TODAY) in refresh(filled, open_session, rebuilt=ALL_DAYS).days
    assert contents(filled) == contents(whole)


@pytest.mark.long
def test_a_refresh_without_new_events_makes_few_requests(stored_lake: str, store_log: Path) -> None:
    lake = Lake(stored_lake, create=True)
    for number in range(3):
        archive(lake, event("a", run(0, 1, 2), id=f"{number}-0"))
    refresh(lake, open_session)
    for each in DERIVED * 2:
        lake.table(each).set_property("aioqless.tests", each)  # a commit
    known, before = versions(lake), store_log.read_text().count(" HTTP/1.1")
    opened = Lake(stored_lake)
    assert refresh(opened, open_session) == Refreshed()
    assert store_log.read_text().count(" HTTP/1.1") - before <= 40
    assert versions(opened) == known, "nothing was committed"
