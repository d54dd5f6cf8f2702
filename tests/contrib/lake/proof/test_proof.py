"""No entry is lost or doubled when processes are killed: short forms of `nox -s proof`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contrib.lake.conftest import write_configuration
from tests.contrib.lake.proof.prove import prove


@pytest.mark.parametrize(
    ("jobs", "kills", "is_whole"),
    [(300, 1, False), pytest.param(20_000, 4, True, marks=pytest.mark.long)],
)
def test_each_entry_is_in_the_lake_once_after_processes_were_killed(
    jobs: int, kills: int, is_whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archiver within a commit; or all kinds of faults, with a lake on an object store."""
    monkeypatch.setenv("SPARK_CONF_DIR", write_configuration(tmp_path / "conf"))
    proof = prove(tmp_path, jobs, kills, seed=7, store=is_whole, all_faults=is_whole)
    assert proof["entries"] == proof["events"] + proof["quarantined"] > proof["events"]
    assert proof["events"] == jobs * 1.1
    assert proof["faults"].total() == (7 if is_whole else 1)
