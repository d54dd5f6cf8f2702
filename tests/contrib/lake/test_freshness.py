"""How far the tables of a lake are behind its events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aioqless.contrib.lake.lake import Lake
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import archive, at, event, fill, run

NAMESPACE = 'a"b\\'


def test_status_and_metrics_say_how_late_the_tables_are(
    lake: Lake, tmp_path: Path, run_lake_command: RunLakeCommand
) -> None:
    """First none of the events is missing in the tables, then two of three are."""
    file = tmp_path / "lake.prom"
    status = ("status", "--lake", lake.url, "--metrics", file)
    assert run_lake_command(*status)[1] == "the lake has no events yet\n"

    def read_metrics() -> list[float]:
        families = text_string_to_metric_families(file.read_text())
        samples = [sample for family in families for sample in family.samples]
        assert {sample.labels["namespace"] for sample in samples} == {NAMESPACE}
        values = {sample.name.removeprefix("aioqless_lake_"): sample.value for sample in samples}
        names = ("events_total", "last_event_seconds", "missing_events", "lag_seconds")
        return [values[name] for name in names]

    fill(lake, event("a", run(0, 1, 2), namespace=NAMESPACE))
    assert run_lake_command(*status, "--max-lag", 0)[0] == 0
    assert read_metrics() == [1, at(2).timestamp(), 0, 0]
    archive(lake, *(event("b", run(0, 5, end), namespace=NAMESPACE) for end in (60, 40)))
    now = datetime.now(UTC)
    for max_lag, expected in ((0, 1), (3_000_000_000, 0)):
        code, out, _ = run_lake_command(*status, "--max-lag", max_lag)
        assert code == expected
        assert f"{NAMESPACE}: 3 events" in out and "2 are not in the tables" in out
    *values, lag = read_metrics()
    assert values == [3, at(60).timestamp(), 2]
    assert lag >= (now - at(40)).total_seconds(), "the age of the older one"
    code, out, err = run_lake_command(*status[:3], "--metrics", tmp_path / "missing" / "lake.prom")
    assert (code, out) == (1, "") and err.count("\n") == 1 and "lake.prom" in err


@pytest.mark.long
def test_partitions_of_a_namespace_are_one_namespace_for_readers(
    lake: Lake, tmp_path: Path, run_lake_command: RunLakeCommand
) -> None:
    names = ["billing{0.4}", "billing{1.27}", "billings{0.1}", "billing{eu}"]
    fill(lake, *(event("a", run(0, 1, 2), namespace=name) for name in names))
    url, period = ("--lake", lake.url), ("--since", "2000-01-01")
    lines = run_lake_command("status", *url)[1].splitlines()
    found = [line.partition(" events")[0] for line in lines]
    assert sorted(found) == ["billing: 2", "billings: 1", "billing{eu}: 1"]
    for name, runs in [("billing", 2), ("billing{1.27}", 1), ("billing{eu}", 1)]:
        code, out, _ = run_lake_command("stats", *period, "--of", name, "--json", *url)
        assert (code, [row["runs"] for row in json.loads(out)]) == (0, [runs])
    report = tmp_path / "report.html"
    run_lake_command("report", *period, "--of", "billing", "-o", report, *url)
    assert "Jobs of billing that ended" in report.read_text()
    assert run_lake_command("check", "--of", "billing", *url)[:2] == (0, "the tables agree\n")
    today = datetime.now(UTC).date()
    run_lake_command("prune", "--older-than", today, "--of", "billing", *url)
    assert {each.namespace for each in lake.table("silver/runs").all_files} == {*names[2:]}
