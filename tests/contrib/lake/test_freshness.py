"""How far the tables of a lake are behind its events."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aioqless.contrib.lake.freshness import Freshness, format_metrics, read_freshness
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.refresh import refresh
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import archive, at, event, run


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two events that are in the tables, and one of them later than that."""
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, event("a", run(0, 1, 2)))
    refresh(lake)
    archive(lake, event("b", run(0, 5, 60)))
    return lake


def test_events_that_are_not_in_the_tables_are_counted(lake: Lake) -> None:
    assert read_freshness(lake) == [Freshness("ql", 2, at(60), 1, at(60))]
    refresh(lake)
    (fresh,) = read_freshness(lake)
    assert fresh == Freshness("ql", 2, at(60), 0, None)
    assert fresh.lag(at(1000)) == 0


def test_metrics_are_in_the_format_of_prometheus() -> None:
    text = format_metrics([Freshness('a"b\\', 3, at(60), 1, at(50))], at(80))
    samples = {
        sample.name: (sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["aioqless_lake_lag_seconds"] == ({"namespace": 'a"b\\'}, 30)
    assert samples["aioqless_lake_events_total"][1] == 3
    assert samples["aioqless_lake_last_event_seconds"][1] == at(60).timestamp()


@pytest.mark.parametrize(("max_lag", "code"), [(0, 1), (timedelta(days=36_500).total_seconds(), 0)])
def test_status_says_whether_the_tables_are_late(
    lake: Lake, tmp_path: Path, run_lake_command: RunLakeCommand, max_lag: float, code: int
) -> None:
    file = tmp_path / "lake.prom"
    arguments = ("--lake", lake.url, "--max-lag", max_lag, "--metrics", file)
    ended, out, _ = run_lake_command("status", *arguments)
    assert ended == code and "ql: 2 events" in out
    assert 'aioqless_lake_missing_events{namespace="ql"} 1' in file.read_text()


def test_status_of_a_lake_without_events_and_of_an_unusable_file(
    lake: Lake, tmp_path: Path, run_lake_command: RunLakeCommand
) -> None:
    empty = Lake(tmp_path / "empty", create=True)
    assert run_lake_command("status", "--lake", empty.url)[1] == "the lake has no events yet\n"
    file = tmp_path / "missing" / "lake.prom"
    code, out, err = run_lake_command("status", "--lake", lake.url, "--metrics", file)
    assert (code, out) == (1, "") and err.count("\n") == 1 and str(file) in err


def test_partitions_of_a_namespace_are_one_namespace_for_readers(
    tmp_path: Path, run_lake_command: RunLakeCommand
) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    names = ["billing{0.4}", "billing{1.27}", "billings{0.1}", "billing{eu}"]
    archive(lake, *(event("a", run(0, 1, 2), namespace=name) for name in names))
    refresh(lake)
    found = [(each.namespace, each.events) for each in read_freshness(lake)]
    assert sorted(found) == [("billing", 2), ("billings", 1), ("billing{eu}", 1)]
    url = ("--lake", lake.url)
    period = ("--since", "2000-01-01")
    for name, runs in [("billing", 2), ("billing{1.27}", 1), ("billing{eu}", 1)]:
        code, out, _ = run_lake_command("stats", *period, "--of", name, "--json", *url)
        assert (code, [row["runs"] for row in json.loads(out)]) == (0, [runs])
    report = tmp_path / "report.html"
    run_lake_command("report", *period, "--of", "billing", "-o", report, *url)
    assert "Jobs of billing that ended" in report.read_text()
    assert run_lake_command("check", "--of", "billing", *url)[:2] == (0, "the tables agree\n")
    code, out, _ = run_lake_command(
        "prune", "--older-than", str(datetime.now(UTC).date()), "--of", "billing", *url
    )
    assert {each.namespace for each in lake.table("silver/runs").all_files} == {*names[2:]}
