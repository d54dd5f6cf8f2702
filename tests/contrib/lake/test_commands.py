"""`aioqless lake` as operators run it: statistics, SQL, the report and compaction."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import compact
from aioqless.contrib.lake.period import Period, parse_period
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import EVENTS
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import (
    SECRET,
    TODAY,
    TOMORROW,
    comparable,
    contents,
    open_session,
    raw,
)


@pytest.fixture
def run(
    spark: SparkSession,
    whole: Lake,
    run_lake_command: RunLakeCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> RunLakeCommand:
    """Run commands on the lake `whole`; those that need Spark use the session of the tests."""
    monkeypatch.setenv("AIOQLESS_LAKE", whole.url)
    return run_lake_command


def test_statistics_are_printed_as_a_table_and_as_json(run: RunLakeCommand) -> None:
    code, out, _ = run("stats", "--since", "2026-11-21", "--by", "klass, queue")
    assert code == 0
    heads, *lines = out.splitlines()
    assert heads.split()[:5] == ["queue", "klass", "runs", "done", "failed"]
    assert [line.split()[:5] for line in lines] == [
        ["mail", "Greet", "6", "4", "3"],
        ["mail", "Send", "1", "1", "0"],
    ]
    code, out, _ = run("stats", "--since", "2026-11-21", "--by", "tag", "--json")
    (x,) = json.loads(out)
    wait = x["wait"]
    assert (x["tag"], x["runs"], wait["count"]) == ("x", 2, 2)
    assert wait["log_bins"] == {"148": 1, "212": 1}


def test_sql_queries_the_tables(run: RunLakeCommand) -> None:
    query = "SELECT jid, state FROM jobs WHERE namespace = 'ql' ORDER BY jid DESC LIMIT 2"
    code, out, err = run("sql", query, "--csv")
    assert (code, out) == (0, "jid,state\ne,failed\nd,complete\n")
    assert "ql: events until 2026-11-22 00:00 UTC\n" in err, "how old the tables are"
    first, _ = run("sql", query, "--json")[1].splitlines()
    assert first == '{"jid": "e", "state": "failed"}'
    table = run("sql", query)[1]
    assert table.split() == ["jid", "state", "e", "failed", "d", "complete"]


@pytest.mark.parametrize(
    "name",
    ["backlog", "cost_by_tag", "job_sets", "late", "retry_storms", "utilisation", "workers"],
)
def test_named_queries_are_answered(run: RunLakeCommand, name: str) -> None:
    code, out, err = run("sql", "--named", name, "--csv")
    assert code == 0, err
    heads, *lines = out.splitlines()
    assert heads.startswith("namespace,") and bool(lines) == (
        name in ("cost_by_tag", "job_sets", "late")
    )


def test_price_of_a_second_is_a_value_of_the_query(run: RunLakeCommand) -> None:
    query = ("sql", "--named", "cost_by_tag", "--json")
    free, priced = (run(*query, *more)[1].splitlines() for more in ((), ("--set", "price=0.5")))
    for line, other in zip(free, priced, strict=True):
        row, costs = json.loads(line), json.loads(other)
        assert row["cost"] == row["seconds"] and costs["cost"] == row["seconds"] / 2
    assert free


SECTIONS = (
    "Throughput and concurrency",
    *("Wait time", "Run time", "Slowest classes", "Busiest hours", "Failures", "Critical paths"),
)


@pytest.mark.parametrize(("namespace", "number"), [("ql", 7), ("{billing}", 6), ("cancelled", 1)])
def test_the_report_is_a_page_without_empty_sections(
    run: RunLakeCommand, tmp_path: Path, namespace: str, number: int
) -> None:
    file = tmp_path / "report.html"
    given = ("-o", file, "--since", "2026-11-21", "--of", namespace)
    assert run("report", *given)[:2] == (0, f"{file}\n")
    text = file.read_text("utf-8")
    assert tuple(re.findall(r"<h2>(.*?)</h2>", text)) == SECTIONS[:number]
    assert SECRET not in text and ("&lt;script&gt;" in text) == (namespace == "ql")
    assert not re.search(r"""(?:href|src)=["'][^#]|@import|url\(http""", text.split("<script>")[0])


def test_compaction_merges_files_and_changes_no_row(filled: Lake) -> None:
    before, tables = comparable(raw(filled, EVENTS)), contents(filled)

    def count_files() -> list[int]:
        days = [each.date for each in filled.table(EVENTS).files("ql")]
        return [days.count(TODAY), days.count(TOMORROW)]

    assert count_files() == [2, 1]
    version = filled.table(EVENTS).version
    assert compact(filled) >= 1
    log = Path(filled.url, EVENTS, "_delta_log", f"{version + 1:020}.json").read_text("utf-8")
    changes = [value for line in log.splitlines() for value in json.loads(line).values()]
    assert {each["dataChange"] for each in changes if "dataChange" in each} == {False}
    assert count_files() == [1, 1]
    assert comparable(raw(filled, EVENTS)) == before and contents(filled) == tables
    assert refresh(filled, open_session).events == 0
    assert compact(filled) == 0


def test_compaction_deletes_only_files_of_versions_older_than_the_limit(filled: Lake) -> None:
    def set_age(file: Path, hours: int) -> None:
        os.utime(file, (time.time() - hours * 3600,) * 2)

    folder = Path(filled.url, EVENTS, filled.table(EVENTS).files("ql")[0].path).parent
    assert compact(filled) >= 1
    for each in folder.glob("*.parquet"):
        set_age(each, 100)
    for log in Path(filled.url, EVENTS, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for each in actions:  # earlier versions have these files
            if removed := each.get("remove"):
                removed["deletionTimestamp"] -= 100 * 3_600_000
        log.write_text("\n".join(map(json.dumps, actions)))
    for name, age in (("old", 30), ("new", 1)):
        copy = shutil.copy(next(folder.glob("*.parquet")), folder / f"{name}.parquet")
        set_age(Path(copy), age)
    before = set(folder.glob("*.parquet"))
    compact(Lake(filled.url))
    assert before - {*folder.glob("*.parquet")} == {folder / "old.parquet"}


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--master", "nowhere", "is no place where Spark runs"),
        ("--master", "local[two]", "is no place where Spark runs"),
        ("--conf", "driver.memory=4g", "is not of the form spark.key=value"),
        ("--conf", "spark.driver.memory", "is not of the form spark.key=value"),
        ("--conf", "spark.driver.memory=lots", "names no size of memory"),
    ],
)
@pytest.mark.parametrize("command", [["archive"], ["tables"], ["put", "rows.csv"]])
def test_bad_options_of_spark_are_refused_before_anything_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_lake_command: RunLakeCommand,
    command: list[str],
    option: str,
    value: str,
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run_lake_command(*command, option, value)
    assert code == 2
    assert why in " ".join(re.sub(r"[\u2500-\u257f]", "", err).split())
    assert not list(tmp_path.iterdir())


def test_a_period_is_from_one_day_to_another() -> None:
    today, one_day = datetime.now(UTC).date(), timedelta(days=1)
    assert parse_period("7d") == Period(today - 6 * one_day, today)
    week = parse_period("8d", "yesterday")
    assert week == Period(today - 7 * one_day, today - one_day)
    assert week.before == Period(today - 14 * one_day, today - 8 * one_day)
    day = date(2026, 11, 20)
    assert parse_period("2026-11-21", "2026-11-21").before == Period(day, day)


@pytest.mark.parametrize("table", ["gold/klasses", "silver/runs"])
@pytest.mark.parametrize("damage", ["file", "log"])
def test_damaged_table_is_named_with_what_to_do(
    filled: Lake, run_lake_command: RunLakeCommand, table: str, damage: str
) -> None:
    folder = Path(filled.url, table)
    if damage == "file":
        for file in folder.rglob("*.parquet"):
            file.write_bytes(file.read_bytes()[:100])
    else:
        (folder / "_delta_log" / f"{99:020}.json").write_text("{}")
    for command in (("stats",), ("sql", f"SELECT * FROM {table.partition('/')[2]}")):
        code, _, err = run_lake_command(*command, "--lake", filled.url)
        if code:
            assert f"{table} is damaged: delete its folder; `aioqless lake tables`" in err
    assert code == 1
