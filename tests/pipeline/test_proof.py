"""Nothing is lost and nothing is there twice, whatever is killed: the short form of `nox -s proof`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from .conftest import configured
from .proof import prove


def test_the_lake_has_each_end_once_although_the_archiver_and_redis_were_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", configured(tmp_path / "conf"))
    told: list[str] = []
    proof = prove(tmp_path, 1_000, 1, entries=100, seed=7, tell=told.append)
    assert proof.rows == proof.entries == 1_100
    assert proof.kills == 1 and any("Redis was killed" in line for line in told)
