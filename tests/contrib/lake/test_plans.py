"""Catalyst plans each table as a whole; percentiles of bins are near the true ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import AddedFile, OpenTable
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import EVENTS
from aioqless.contrib.lake.spark import delta_write, transform
from tests.contrib.lake.lakes import archive, event, made, open_session, random_events, rows, run

OPAQUE = re.compile(r"Python|Pandas|MapInArrow|MapPartitions|Scan ExistingRDD|DeserializeToObject")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> list[str]:
    """The physical plans of the rows that tasks write."""
    found: list[str] = []
    write = delta_write.write_files

    def note(
        frame: DataFrame, tables: Mapping[str, OpenTable], *make: Callable[..., object]
    ) -> dict[str, list[AddedFile]]:
        java = frame._jdf  # noqa: SLF001 (explain() only prints)
        found.append(java.queryExecution().executedPlan().toString())
        return write(frame, tables, *make)  # type: ignore[arg-type]

    assert spark
    monkeypatch.setattr(transform, "write_files", note)
    return found


def test_no_python_function_is_between_a_source_and_the_writer(
    plans: list[str], lake: Lake
) -> None:
    archive(lake, *random_events(random.Random(2), 20))
    refresh(lake, open_session)
    assert len(plans) == 4
    for plan in plans:
        assert "FileScan parquet" in plan
        assert not OPAQUE.search(plan), plan


def test_jobs_in_the_interface_of_spark_say_which_tables_they_make(
    spark: SparkSession, lake: Lake
) -> None:
    archive(lake, *random_events(random.Random(2), 20))
    refresh(lake, open_session)
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)  # noqa: SLF001  # type: ignore[union-attr]
    found = {jobs.apply(number).description().getOrElse(None) for number in range(4)}
    assert found == {
        "silver/runs of 20 events",
        "gold/klasses, gold/tags, gold/workers of 20 events",
        "gold/failures of 20 events",
        "gold/throughput of 20 events",
    }


def test_files_have_statistics_and_are_read_by_their_days(lake: Lake, tmp_path: Path) -> None:
    archive(lake, *random_events(random.Random(3), 20))
    refresh(lake, open_session)
    events, runs = lake.table(EVENTS), lake.table("silver/runs")
    assert sum(each.rows for each in runs.all_files) == sum(
        len(row["runs"]) for row in events.read({f.partition for f in events.all_files}).to_pylist()
    )
    for each in runs.all_files:
        (path,) = Path(lake.url, "silver/runs").glob(f"*/*/{Path(each.path).name}")
        assert path.stat().st_size == each.size
        assert each.greatest["ended"] and tmp_path.exists()


def peaks(chance: random.Random) -> float:
    return chance.gauss(*chance.choice([(0.01, 0.0005), (90, 2)]))


@pytest.mark.parametrize(
    "draw",
    [lambda _: 2.5, peaks, lambda chance: chance.paretovariate(0.7)],
    ids=["constant", "two peaks", "heavy tail"],
)
def test_percentiles_of_a_day_are_within_twelve_thousandths(
    draw: Callable[[random.Random], float],
) -> None:
    chance = random.Random(5)
    waits = sorted(max(1e-6, round(draw(chance), 6)) for _ in range(900))
    (row,) = rows(
        made("gold/klasses", *(event(f"{n}", run(-w, 0, 1)) for n, w in enumerate(waits)))
    )
    for name, share in (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99)):
        true = waits[-(-len(waits) * share // 100) - 1]
        assert row.wait[name] == pytest.approx(true, rel=0.012), name
    assert (row.wait.least, row.wait.most) == (waits[0], waits[-1])
