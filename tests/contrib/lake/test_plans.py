"""Catalyst plans each table as a whole; percentiles of bins are near the true ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import AddedFile, OpenTable
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import EVENTS
from aioqless.contrib.lake.spark import delta_write, transform
from tests.contrib.lake.lakes import archive, by, event, made, open_session, random_events, run

OPAQUE = re.compile(r"Python|Pandas|MapInArrow|MapPartitions|Scan ExistingRDD|DeserializeToObject")


class Recorded(NamedTuple):
    """What Spark did for a refresh: physical plans of written rows, and descriptions of jobs."""

    plans: list[str]
    jobs: set[str]


@pytest.fixture(scope="module")
def refreshed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A refresh of 20 events."""
    found: list[str] = []
    lake = Lake(tmp_path_factory.mktemp("planned") / "lake", create=True)
    archive(lake, *random_events(random.Random(2), 20))
    write = delta_write.write_files

    def note(
        frame: DataFrame, tables: Mapping[str, OpenTable], *make: Callable[..., object]
    ) -> dict[str, list[AddedFile]]:
        java = frame._jdf  # noqa: SLF001 (explain() only prints)
        found.append(java.queryExecution().executedPlan().toString())
        return write(frame, tables, *make)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transform, "write_files", note)
        refresh(lake, open_session)
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)  # noqa: SLF001  # type: ignore[union-attr]
    return Recorded(found, {jobs.apply(n).description().getOrElse(None) for n in range(4)})


def test_no_python_function_is_between_a_source_and_the_writer(refreshed: Recorded) -> None:
    assert len(refreshed.plans) == 4
    for plan in refreshed.plans:
        assert "FileScan parquet" in plan
        assert not OPAQUE.search(plan), plan


def test_jobs_in_the_interface_of_spark_say_which_tables_they_make(
    refreshed: Recorded,
) -> None:
    assert refreshed.jobs == {
        "silver/runs of 20 events",
        "gold/klasses, gold/tags, gold/workers of 20 events",
        "gold/failures of 20 events",
        "gold/throughput of 20 events",
    }


def test_files_have_statistics_and_are_read_by_their_days(whole: Lake) -> None:
    events, runs = whole.table(EVENTS), whole.table("silver/runs")
    assert sum(each.rows for each in runs.all_files) == sum(
        len(row["runs"]) for row in events.read({f.partition for f in events.all_files}).to_pylist()
    )
    for each in runs.all_files:
        (path,) = Path(whole.url, "silver/runs").glob(f"*/*/{Path(each.path).name}")
        assert path.stat().st_size == each.size
        assert each.greatest["ended"]


def peaks(chance: random.Random) -> float:
    return chance.gauss(*chance.choice([(0.01, 0.0005), (90, 2)]))


WAITS: dict[str, Callable[[random.Random], float]] = {
    "constant": lambda _: 2.5,
    "two peaks": peaks,
    "heavy tail": lambda chance: chance.paretovariate(0.7),
}


def test_percentiles_of_a_day_are_within_twelve_thousandths() -> None:
    waits = {}
    for klass, draw in WAITS.items():
        chance = random.Random(5)
        waits[klass] = sorted(max(1e-6, round(draw(chance), 6)) for _ in range(900))
    given = (
        event(f"{klass} {n}", run(-wait, 0, 1), klass=klass)
        for klass, drawn in waits.items()
        for n, wait in enumerate(drawn)
    )
    found = by(made("gold/klasses", *given), "klass")
    assert found.keys() == waits.keys()
    for klass, row in found.items():
        for name, share in (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99)):
            true = waits[klass][-(-len(waits[klass]) * share // 100) - 1]
            assert row.wait[name] == pytest.approx(true, rel=0.012), (klass, name)
        assert (row.wait.least, row.wait.most) == (waits[klass][0], waits[klass][-1])
