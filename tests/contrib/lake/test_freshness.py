"""How far the tables of a lake are behind its events."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aioqless.cli.main import main
from aioqless.contrib.lake.freshness import Freshness, format_metrics, read_freshness
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.refresh import refresh
from tests.contrib.lake.lakes import archive, no_spark
from tests.contrib.lake.literal import at, event, run


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two events that are in the tables, and one of them later than that."""
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, event("a", run(0, 1, 2)))
    refresh(lake, no_spark)
    archive(lake, event("b", run(0, 5, 60)))
    return lake


def test_events_that_are_not_in_the_tables_are_counted(lake: Lake) -> None:
    assert read_freshness(lake) == [Freshness("ql", 2, at(60), 1, at(60))]
    refresh(lake, no_spark)
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
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    max_lag: float,
    code: int,
) -> None:
    file = tmp_path / "lake.prom"
    arguments = ["--lake", lake.url, "--max-lag", str(max_lag), "--metrics", str(file)]
    monkeypatch.setattr(sys, "argv", ["aioqless", "pipeline", "status", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert int(ended.value.code or 0) == code
    assert "ql: 2 events" in capsys.readouterr().out
    assert 'aioqless_lake_missing_events{namespace="ql"} 1' in file.read_text()
