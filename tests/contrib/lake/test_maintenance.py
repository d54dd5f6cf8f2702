"""Retention, erasure and checks of a lake."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from aioqless import Client
from aioqless.contrib.lake import open_table
from aioqless.contrib.lake import refresh as refresh_module
from aioqless.contrib.lake.backlog import store_backlog
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import compact, drop_payloads, erase, prune
from aioqless.contrib.lake.reconciliation import check, check_redis
from aioqless.contrib.lake.refresh import DERIVED, refresh
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, SNAPSHOTS, TABLES
from aioqless.contrib.lake.statistics import ALL_DAYS
from aioqless.contrib.lake.storage import LakeError
from aioqless.contrib.lake.tasks import run_tasks
from tests.contrib.lake.lakes import (
    DAY,
    LATE,
    TOMORROW,
    archive,
    contents,
    copied,
    event,
    raw,
    run,
    texts,
    view,
)

TODAY = date(2026, 11, 21)
PERSONAL = "alice@example.org"


@pytest.fixture
def lake(whole: Lake, tmp_path: Path) -> Lake:
    return copied(whole, tmp_path / "lake")


def dates(lake: Lake, table: str) -> set[date]:
    return {row.date for row in raw(lake, table)}


def reject(lake: Lake, text: str) -> None:
    row = {"id": "0-1", "ordinal": 2, "problem": "it has no ended", "raw": text, "namespace": "ql"}
    rows = pa.RecordBatch.from_pylist([row | {"date": TODAY}], TABLES[QUARANTINE].schema)
    lake.table(QUARANTINE).append([rows])


def test_pruned_days_are_deleted_from_all_tables_and_are_not_added_again(lake: Lake) -> None:
    kept = {name: [row for row in raw(lake, name) if row.date >= TOMORROW] for name in TABLES}
    assert prune(lake, TOMORROW) > 0
    for name in TABLES:
        assert len(raw(lake, name)) == len(kept[name]) and dates(lake, name) <= {TOMORROW}, name
    archive(lake, event("late", run(0, 1, 2), id="9-0", date=TOMORROW))
    refresh(lake)
    assert dates(lake, "gold/klasses") == dates(lake, "gold/throughput") == {TOMORROW}
    before = contents(lake)
    refresh(lake, rebuilt=ALL_DAYS)
    assert contents(lake)["silver/runs"] == before["silver/runs"]
    assert dates(lake, "gold/klasses") == {TOMORROW}


def test_gold_of_days_without_events_survives_a_rebuild(lake: Lake) -> None:
    before = contents(lake)
    prune(lake, TOMORROW, layers=["bronze", "silver"])
    assert contents(lake)["gold/klasses"] == before["gold/klasses"]
    refresh(lake, rebuilt=ALL_DAYS)
    of_day = [row for row in raw(lake, "gold/klasses") if row.date == TODAY]
    found = {(row.namespace, row.klass, row.runs) for row in of_day}
    assert found == {
        *(("ql", "Greet", 1), ("ql", "Send", 1)),
        *(("{billing}", "Greet", 1), ("cancelled", "Greet", 0)),
    }


def test_only_one_namespace_is_pruned(lake: Lake) -> None:
    prune(lake, TOMORROW, "{billing}")
    assert {row.namespace for row in raw(lake, EVENTS) if row.date == TODAY} == {"ql", "cancelled"}


def test_payloads_are_deleted_before_a_date_and_rows_stay(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, event("a", run(0, 1, 2), data=PERSONAL))
    reject(lake, PERSONAL)
    archive(lake, event("b", run(0, 1, 2), data="kept", date=TOMORROW), skipped=1)
    refresh(lake)
    assert drop_payloads(lake, TOMORROW) == 2 and drop_payloads(lake, TOMORROW) == 0
    for name in TABLES:
        lake.table(name).delete_files(0)
    assert {row.jid: row.data for row in raw(lake, EVENTS)} == {"a": None, "b": "kept"}
    assert raw(lake, QUARANTINE)[0].problem == "it has no ended"
    assert not any(PERSONAL in text for text in texts(lake))
    assert check(lake) == []


def test_erased_job_is_in_no_file_of_the_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    failed = run(0, 1, 2, "fail", failure_group="g", message=f"unknown user {PERSONAL}")
    archive(
        lake, event(PERSONAL, failed, data=PERSONAL), event("other", failed | {"message": "no"})
    )
    archive(lake, event(PERSONAL, run(3, 4, 5), id="7-0"))
    archive(lake, event("child", run(6, 7, 8), depends=[PERSONAL, "other"], spawned_from=PERSONAL))
    reject(lake, f'{{"jid": "{PERSONAL}", "data": "x"}}')
    refresh(lake)
    compact(lake)
    counts = contents(lake)["gold/klasses"]
    assert len(view(lake, "paths")) == 1
    assert erase(lake, [PERSONAL]) >= 4
    assert not any(PERSONAL in text for text in texts(lake))
    assert {row.jid for row in raw(lake, "silver/runs")} == {"other", "child"}
    assert contents(lake)["gold/klasses"] == counts
    (failures,) = raw(lake, "gold/failures")
    assert (failures["count"], [sample.jid for sample in failures.samples]) == (2, ["other"])
    (child,) = [row for row in view(lake, "jobs") if row.jid == "child"]
    assert child.depends == child.stages[0].depends == ["other"] and child.spawned_from is None
    assert erase(lake, [PERSONAL]) == 0
    assert check(lake) == []


def test_erased_tag_is_in_no_file_of_the_lake_and_its_jobs_stay(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, event("a", run(0, 1, 2), tags=[PERSONAL, "x"]), event("b", run(0, 1, 2)))
    reject(lake, f'{{"jid": "c", "tags": "[\\"{PERSONAL}\\"]"}}')
    refresh(lake)
    assert erase(lake, [], tags=[PERSONAL]) >= 4
    assert not any(PERSONAL in text for text in texts(lake))
    assert {row.jid: row.tags for row in raw(lake, "silver/runs")} == {"a": ["x"], "b": []}
    assert {row.tag for row in raw(lake, "gold/tags")} == {"x"}
    assert not raw(lake, QUARANTINE)
    assert check(lake) == []


@pytest.mark.parametrize("at_once", [0, 2**20])
@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("others", [{"a"}, set()])
def test_a_refresh_while_a_job_is_erased_does_not_commit_it(
    tmp_path: Path,
    others: set[str],
    is_read: bool,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The refresh has read the files that are deleted, or is about to; few rows, or many."""
    monkeypatch.setattr(open_table, "_READ_AT_ONCE", at_once)
    lake = Lake(tmp_path / "lake", create=True)
    for jid in others:
        archive(lake, event(jid, run(0, 1, 2)))
    archive(lake, event(PERSONAL, run(0, 1, 2)))

    def erase_meanwhile(*work: Any) -> list[Any]:
        monkeypatch.setattr(refresh_module, "run_tasks", run_tasks)
        results = list(run_tasks(*work)) if is_read else []
        erase(Lake(lake.url), [PERSONAL])
        return results or list(run_tasks(*work))

    monkeypatch.setattr(refresh_module, "run_tasks", erase_meanwhile)
    assert refresh(lake).events == len(others)
    assert {row.jid for row in raw(lake, "silver/runs")} == others


def test_sums_of_days_of_which_all_events_were_erased_go_when_they_are_computed_again(
    lake: Lake,
) -> None:
    erase(lake, ["a", "b", "c", "d", "e", "other", "never"])
    assert dates(lake, "gold/klasses") == {TODAY, TOMORROW}
    refresh(lake, rebuilt=ALL_DAYS)
    assert {row.namespace for row in raw(lake, "gold/klasses")} == {"cancelled"}
    assert check(lake) == []


def test_days_that_are_pruned_while_a_refresh_computes_them_stay_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "lake", create=True)

    def prune_meanwhile(*work: Any) -> list[Any]:
        monkeypatch.setattr(refresh_module, "run_tasks", run_tasks)
        results = list(run_tasks(*work))
        prune(Lake(lake.url), TOMORROW)
        return results

    archive(lake, event("a", run(0, 1, 2)), event("b", run(0, 1, 2), date=TOMORROW))
    monkeypatch.setattr(refresh_module, "run_tasks", prune_meanwhile)
    refresh(lake)
    assert {name: dates(lake, name) for name in DERIVED} == {
        name: set() if name in ("gold/tags", "gold/failures") else {TOMORROW} for name in DERIVED
    }


def test_an_erasure_leaves_snapshots_of_queues_as_they_are(lake: Lake) -> None:
    row = {"queue": "mail", "depends": 3, "namespace": "ql", "date": TODAY}
    store_backlog(lake, {SNAPSHOTS: pa.RecordBatch.from_pylist([row], TABLES[SNAPSHOTS].schema)})
    assert erase(lake, ["a"], tags=["x"]) > 0
    assert [each.depends for each in raw(lake, SNAPSHOTS)] == [3]


def test_an_erasure_reports_files_of_killed_processes_that_it_can_not_delete_yet(
    lake: Lake,
) -> None:
    lines: list[str] = []
    shutil.copy(next(Path(lake.url).glob("silver/runs/*/*/*.parquet")), f"{lake.url}/silver/runs")
    erase(lake, ["a"], progress=lines.append)
    assert lines[-1].startswith("1 files of killed or running processes may have the jobs")


def test_check_finds_no_difference_in_an_intact_lake(lake: Lake) -> None:
    assert check(lake) == []
    compact(lake)
    prune(lake, TOMORROW)
    assert check(lake) == []


@pytest.mark.parametrize("table", DERIVED)
def test_check_finds_a_day_that_is_missing_from_a_table(lake: Lake, table: str) -> None:
    opened = lake.table(table)
    opened.delete({opened.files("ql")[0].partition})
    name = table.partition("/")[2].replace("tags", "workers").replace("workers", "workers_and_tags")
    assert name in {each.check for each in check(lake)}


def test_check_finds_a_doubled_event_and_a_missing_one(lake: Lake) -> None:
    table = lake.table(EVENTS)
    day = {("ql", TODAY)}
    table.append(table.read(day, where="ordinal = 1").to_batches())
    found = {each.check: each.row for each in check(lake, "ql")}
    assert found["entries"] == {"expected": 6, "found": 7}
    table.replace(table.read(day, where="ordinal > 1").to_batches(), day)
    found = {each.check: each.row for each in check(lake, "ql")}
    assert found["numbers"] == {"expected": 6, "found": 5}


def test_check_finds_tables_that_lag_behind(lake: Lake) -> None:
    archive(lake, *LATE[:1])
    found = [each.row for each in check(lake, "ql") if each.check == "positions"]
    assert {(row["name"], row["expected"], row["found"]) for row in found} == {
        (name, 7, 6) for name in DERIVED
    }


def test_users_add_checks_of_their_own(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "slow.sql").write_text(
        "SELECT klass, wait.p95 AS waited FROM klasses WHERE wait.p95 > 60;"
    )
    (found,) = check(lake, folder=tmp_path)
    assert str(found) == "slow of ql: klass Greet, waited 61"
    (tmp_path / "slow.sql").write_text("SELECT nothing FROM klasses")
    with pytest.raises(LakeError, match=r"the check slow is no query .*nothing"):
        check(lake, folder=tmp_path)


async def test_check_compares_with_the_statistics_of_redis(client: Client, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    mail = client.queue("mail")
    jid = await mail.put("greet")
    (job,) = await mail.pop(1, worker="ann")
    await job.complete()
    today = datetime.now(UTC).date()
    count, mean = await check_redis(lake, client, [today])
    assert (count.row["count"], count.row["in Redis"]) == (0, 1) and mean.row["mean"] == 0
    stats = await mail.stats()
    midnight = (today - TODAY).days * DAY
    last = run(midnight, midnight, midnight + stats.run.mean)
    archive(lake, event(jid, last, namespace=client.namespace, date=today))
    refresh(lake)
    assert await check_redis(lake, client, [today]) == []
