"""No entry is lost or doubled when processes are killed: short forms of `nox -s proof`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from aioqless.contrib.lake.archiver import Archiver
from aioqless.contrib.lake.lake import Lake
from tests.contrib.lake.archiver_process import Target
from tests.contrib.lake.conftest import write_configuration
from tests.contrib.lake.proof import prove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_each_entry_is_in_the_lake_once_after_the_archiver_was_killed_within_a_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", write_configuration(tmp_path / "conf"))

    def finish(target: Target, entries: int) -> None:
        """Archive in this process, whose Spark is there already."""
        lake = Lake(target.lake)
        Archiver(lake, target.redis_url, target.namespace, entries=entries).once()

    proof = prove(
        tmp_path, 1_000, 1, seed=7, store=False, all_faults=False, finish=finish,
        report=lambda line: None,
    )  # fmt: skip
    assert (proof.events, proof.quarantined) == (1_100, 6)
    assert proof.faults == {"kill -9 of the archiver, within": 1}


@pytest.mark.long
def test_each_entry_is_on_the_object_store_once_after_all_kinds_of_faults(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", write_configuration(tmp_path / "conf"))
    proof = prove(tmp_path, 20_000, 4, seed=7, report=lambda line: None)
    assert proof.entries == proof.events + proof.quarantined
    assert sum(proof.faults.values()) == 7
