"""The lake example, from the first page of the audit to the report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable

from tests.contrib.lake.conftest import write_configuration
from tests.examples.conftest import environment_of

ROOT = Path(__file__).parents[2]
PAGES = 12


def test_help_is_printed_without_spark() -> None:
    """The whole example is a long test, which CI runs."""
    command = [sys.executable, "-m", "examples.lake", "--help"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0 and "--pages" in ran.stdout, ran.stderr


@pytest.mark.long
def test_jobs_of_the_audit_are_stored_and_counted(tmp_path: Path, data: Path) -> None:
    folder = tmp_path / "audit"
    options = ["--first", "multiprocessing.html", "--pages", str(PAGES)]
    spark = write_configuration(tmp_path / "conf")
    ran = subprocess.run(
        [sys.executable, "-m", "examples.lake", str(folder), *options],
        cwd=ROOT,
        env=environment_of(data) | {"SPARK_CONF_DIR": spark},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    # the audit's report is a job, too
    assert f"\n{PAGES + 1} events in 1 batches; 0 in quarantine" in ran.stdout
    assert re.search(
        rf"^pages +examples\.site_audit\.pages\.visit +{PAGES} ", ran.stdout, re.MULTILINE
    )
    table = DeltaTable(folder / "lake/silver/runs").to_pyarrow_table()
    assert table.num_rows == PAGES + 1 and "1/multiprocessing.html" in table["jid"].to_pylist()
    assert "</html>" in (folder / "report.html").read_text()
