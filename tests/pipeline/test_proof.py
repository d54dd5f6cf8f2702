"""Nothing is lost and nothing is there twice, whatever is killed: the short form of `nox -s proof`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from .proof import prove


def test_the_lake_has_each_end_once_although_the_archiver_and_redis_were_killed(tmp_path: Path) -> None:
    told: list[str] = []
    proof = prove(tmp_path, 3_000, 1, entries=200, seed=7, tell=told.append)
    assert proof.rows == proof.entries == 3_300
    assert proof.kills == 1 and any("Redis was killed" in line for line in told)
