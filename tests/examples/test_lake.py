"""The lake example, from the first page of the audit to the report."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable

from aioqless.contrib import private_redis
from tests.contrib.lake.conftest import write_configuration

ROOT = Path(__file__).parents[2]
PAGES = 12


@dataclass
class ExampleRun:
    """The output of a run of the example, and its folder."""

    folder: Path
    out: str


@pytest.fixture(scope="module")
def example_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleRun]:
    folder, data = (
        tmp_path_factory.mktemp("lake") / "audit",
        Path(tempfile.mkdtemp(prefix="aioqless-")),
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("AIOQLESS_URL", "REDIS_URL")
    }
    command = [
        sys.executable,
        "-m",
        "examples.lake",
        str(folder),
        "--first",
        "multiprocessing.html",
        "--pages",
        str(PAGES),
    ]
    environment |= {
        "AIOQLESS_DATA": str(data),
        "SPARK_CONF_DIR": write_configuration(tmp_path_factory.mktemp("spark") / "conf"),
    }
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    yield ExampleRun(folder, ran.stdout)
    private_redis.stop(data, force=True)
    shutil.rmtree(data)


def test_help_is_printed_without_spark() -> None:
    """The whole example is a long test, which CI runs."""
    command = [sys.executable, "-m", "examples.lake", "--help"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0 and "--pages" in ran.stdout, ran.stderr


@pytest.mark.long
def test_jobs_of_the_audit_are_stored_and_counted(example_run: ExampleRun) -> None:
    assert (
        f"\n{PAGES + 1} events in 1 batches; 0 in quarantine" in example_run.out
    )  # the audit's report is a job, too
    assert re.search(
        rf"^pages +examples\.site_audit\.pages\.visit +{PAGES} ", example_run.out, re.MULTILINE
    )
    table = DeltaTable(example_run.folder / "lake/silver/runs").to_pyarrow_table()
    assert table.num_rows == PAGES + 1 and "1/multiprocessing.html" in table["jid"].to_pylist()
