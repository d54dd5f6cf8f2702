"""Retention, erasure and checks of a lake."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from aioqless import Client
from aioqless.contrib.lake.backlog import store_backlog
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import compact, drop_payloads, erase, prune
from aioqless.contrib.lake.open_table import AddedFile
from aioqless.contrib.lake.period import ALL_DAYS
from aioqless.contrib.lake.read.reconciliation import check, check_redis
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import DERIVED, EVENTS, QUARANTINE, SNAPSHOTS, TABLES
from aioqless.contrib.lake.spark import transform
from aioqless.contrib.lake.storage import LakeError
from tests.contrib.lake.lakes import (
    DAY,
    LATE,
    TODAY,
    TOMORROW,
    archive,
    contents,
    event,
    fill,
    open_session,
    raw,
    run,
    texts,
    view,
)

PERSONAL, TAG = "alice@example.org", "customer-4711"


def dates(lake: Lake, table: str) -> set[date]:
    return {row.date for row in raw(lake, table)}


def reject(lake: Lake, text: str) -> None:
    row = {"id": "0-1", "ordinal": 2, "problem": "it has no ended", "raw": text, "namespace": "ql"}
    rows = pa.RecordBatch.from_pylist([row | {"date": TODAY}], TABLES[QUARANTINE].schema)
    lake.table(QUARANTINE).append([rows])


def test_pruned_days_are_deleted_from_all_tables_and_are_not_added_again(filled: Lake) -> None:
    kept = {name: [row for row in raw(filled, name) if row.date >= TOMORROW] for name in TABLES}
    assert prune(filled, TOMORROW) > 0
    for name in TABLES:
        assert len(raw(filled, name)) == len(kept[name]) and dates(filled, name) <= {TOMORROW}, name
    archive(filled, event("late", run(0, 1, 2), id="9-0", date=TOMORROW))
    refresh(filled, open_session)
    assert dates(filled, "gold/klasses") == dates(filled, "gold/throughput") == {TOMORROW}
    before = contents(filled)
    refresh(filled, open_session, rebuilt=ALL_DAYS)
    assert contents(filled)["silver/runs"] == before["silver/runs"]
    assert dates(filled, "gold/klasses") == {TOMORROW}


def test_payloads_are_deleted_before_a_date_and_rows_stay(lake: Lake) -> None:
    archive(lake, event("a", run(0, 1, 2), data=PERSONAL))
    reject(lake, PERSONAL)
    archive(lake, event("b", run(0, 1, 2), data="kept", date=TOMORROW), skipped=1)
    refresh(lake, open_session)
    assert drop_payloads(lake, TOMORROW) == 2 and drop_payloads(lake, TOMORROW) == 0
    for name in TABLES:
        lake.table(name).delete_files(0)
    assert {row.jid: row.data for row in raw(lake, EVENTS)} == {"a": None, "b": "kept"}
    assert raw(lake, QUARANTINE)[0].problem == "it has no ended"
    assert not any(PERSONAL in text for text in texts(lake))
    assert check(lake) == []


def test_erased_job_and_tag_are_in_no_file_of_the_lake(lake: Lake) -> None:
    failed = run(0, 1, 2, "fail", failure_group="g", message=f"unknown user {PERSONAL}")
    archive(
        lake,
        event(PERSONAL, failed, data=PERSONAL, tags=["x"]),
        event("other", failed | {"message": "no"}, tags=[TAG, "x"]),
    )
    archive(lake, event(PERSONAL, run(3, 4, 5), id="7-0"))
    archive(lake, event("child", run(6, 7, 8), depends=[PERSONAL, "other"], spawned_from=PERSONAL))
    reject(lake, f'{{"jid": "{PERSONAL}", "data": "x"}}')
    reject(lake, f'{{"jid": "c", "tags": "[\\"{TAG}\\"]"}}')
    refresh(lake, open_session)
    compact(lake)
    counts = contents(lake)["gold/klasses"]
    assert len(view(lake, "paths")) == 1
    assert erase(lake, open_session, [PERSONAL], tags=[TAG]) >= 4
    assert not any(each in text for text in texts(lake) for each in (PERSONAL, TAG))
    assert {row.jid: row.tags for row in raw(lake, "silver/runs")} == {"other": ["x"], "child": []}
    assert contents(lake)["gold/klasses"] == counts
    assert {row.tag for row in raw(lake, "gold/tags")} == {"x"}
    (failures,) = raw(lake, "gold/failures")
    assert (failures["count"], [sample.jid for sample in failures.samples]) == (2, ["other"])
    (child,) = [row for row in view(lake, "jobs") if row.jid == "child"]
    assert child.depends == child.stages[0].depends == ["other"] and child.spawned_from is None
    assert erase(lake, open_session, [PERSONAL], tags=[TAG]) == 0
    assert not raw(lake, QUARANTINE) and check(lake) == []


def test_an_erasure_of_what_no_table_has_changes_nothing_and_starts_no_spark(
    filled: Lake,
) -> None:
    versions = {name: filled.table(name).version for name in (EVENTS, QUARANTINE)}
    before = contents(filled)

    def refuse(rows: int) -> SparkSession:
        raise AssertionError(f"Spark is started for {rows} rows")

    assert erase(filled, refuse, ["none"], tags=["none"]) == 0
    assert {name: filled.table(name).version for name in versions} == versions
    assert contents(filled) == before


def refresh_beside(
    monkeypatch: pytest.MonkeyPatch, lake: Lake, act: Callable[[], object], *, is_read: bool = True
) -> int:
    """Refresh, and act before the tables are committed; the events may have been read by then."""

    make_tables = transform.make_tables

    def act_meanwhile(*work: Any) -> dict[str, list[AddedFile]]:
        monkeypatch.setattr(transform, "make_tables", make_tables)
        made = make_tables(*work) if is_read else {}
        act()
        return made or make_tables(*work)

    monkeypatch.setattr(transform, "make_tables", act_meanwhile)
    return refresh(lake, open_session).events


@pytest.mark.parametrize(
    ("others", "is_read"),
    [
        pytest.param({"a"}, True),
        pytest.param(set(), False),
        pytest.param({"a"}, False, marks=pytest.mark.long),
        pytest.param(set(), True, marks=pytest.mark.long),
    ],
)
def test_a_refresh_while_a_job_is_erased_does_not_commit_it(
    lake: Lake, others: set[str], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refresh has read the files that are deleted, or is about to."""
    for jid in (*others, PERSONAL):
        archive(lake, event(jid, run(0, 1, 2)))
    other = Lake(lake.url)
    done = refresh_beside(
        monkeypatch, lake, lambda: erase(other, open_session, [PERSONAL]), is_read=is_read
    )
    assert done == len(others)
    assert {row.jid for row in raw(lake, "silver/runs")} == others


@pytest.mark.long
def test_days_that_are_pruned_while_a_refresh_computes_them_stay_away(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(lake, event("a", run(0, 1, 2)), event("b", run(0, 1, 2), date=TOMORROW))
    refresh_beside(monkeypatch, lake, lambda: prune(Lake(lake.url), TOMORROW))
    assert {name: dates(lake, name) for name in DERIVED} == {
        name: set() if name in ("gold/tags", "gold/failures") else {TOMORROW} for name in DERIVED
    }


@pytest.mark.long
def test_sums_of_days_of_which_all_events_were_erased_go_when_they_are_computed_again(
    filled: Lake,
) -> None:
    erase(filled, open_session, ["a", "b", "c", "d", "e", "other", "never"])
    assert dates(filled, "gold/klasses") == {TODAY, TOMORROW}
    refresh(filled, open_session, rebuilt=ALL_DAYS)
    assert {row.namespace for row in raw(filled, "gold/klasses")} == {"cancelled"}
    assert check(filled) == []


def test_an_erasure_leaves_snapshots_of_queues_as_they_are(filled: Lake) -> None:
    row = {"queue": "mail", "depends": 3, "namespace": "ql", "date": TODAY}
    store_backlog(filled, {SNAPSHOTS: pa.RecordBatch.from_pylist([row], TABLES[SNAPSHOTS].schema)})
    assert erase(filled, open_session, ["a"], tags=["x"]) > 0
    assert [each.depends for each in raw(filled, SNAPSHOTS)] == [3]


def test_an_erasure_reports_files_of_killed_processes_that_it_can_not_delete_yet(
    filled: Lake,
) -> None:
    lines: list[str] = []
    shutil.copy(
        next(Path(filled.url).glob("silver/runs/*/*/*.parquet")), f"{filled.url}/silver/runs"
    )
    erase(filled, open_session, ["a"], progress=lines.append)
    assert lines[-1].startswith("1 files of killed or running processes may have the jobs")


@pytest.mark.parametrize("table", DERIVED)
def test_check_finds_a_day_that_is_missing_from_a_table(filled: Lake, table: str) -> None:
    opened = filled.table(table)
    opened.delete({opened.files("ql")[0].partition})
    name = table.partition("/")[2].replace("tags", "workers").replace("workers", "workers_and_tags")
    assert name in {each.check for each in check(filled)}


def test_check_finds_a_doubled_event_and_a_missing_one(filled: Lake) -> None:
    table = filled.table(EVENTS)
    day = {("ql", TODAY)}
    table.append(table.read(day, where="ordinal = 1").to_batches())
    found = {each.check: each.row for each in check(filled, "ql")}
    assert found["entries"] == {"expected": 6, "found": 7}
    table.delta.delete("ordinal = 1")
    found = {each.check: each.row for each in check(filled, "ql")}
    assert found["numbers"] == {"expected": 6, "found": 5}


def test_check_finds_tables_that_lag_behind(filled: Lake) -> None:
    archive(filled, *LATE[:1])
    found = [each.row for each in check(filled, "ql") if each.check == "positions"]
    assert {(row["name"], row["expected"], row["found"]) for row in found} == {
        (name, 7, 6) for name in DERIVED
    }


def test_users_add_checks_of_their_own(filled: Lake, tmp_path: Path) -> None:
    (tmp_path / "slow.sql").write_text(
        "SELECT klass, wait.p95 AS waited FROM klasses WHERE wait.p95 > 60;"
    )
    (found,) = check(filled, folder=tmp_path)
    assert str(found) == "slow of ql: klass Greet, waited 61"
    (tmp_path / "slow.sql").write_text("SELECT nothing FROM klasses")
    with pytest.raises(LakeError, match=r"the check slow is no query .*nothing"):
        check(filled, folder=tmp_path)


async def test_check_compares_with_the_statistics_of_redis(client: Client, lake: Lake) -> None:
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
    fill(lake, event(jid, last, namespace=client.namespace, date=today))
    assert await check_redis(lake, client, [today]) == []
