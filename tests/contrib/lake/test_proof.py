"""Nothing is lost and nothing is there twice, whatever is killed: the short form of `nox -s
proof`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from aioqless.contrib.lake.archiver import Archiver
from aioqless.contrib.lake.lake import Lake
from tests.contrib.lake.conftest import configured
from tests.contrib.lake.proof import batches_in, prove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.long
def test_the_lake_has_each_end_once_although_the_archiver_and_redis_were_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", configured(tmp_path / "conf"))
    told: list[str] = []

    def finish(url: str, lake: Path, entries: int) -> list[int]:
        """What the killed process left is taken up by this one, whose Spark is there already."""
        lines: list[str] = []
        Archiver(spark, Lake(lake), url, entries=entries, tell=lines.append).once()
        return batches_in(lines)

    proof = prove(tmp_path, 1_000, 1, seed=7, finish=finish, tell=told.append)
    assert proof.rows == proof.entries == 1_100
    assert proof.kills == 1 and any("Redis was killed" in line for line in told)
