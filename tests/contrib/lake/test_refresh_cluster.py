"""Refresh and compaction by executors in other processes, and of a Spark Connect server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.reconciliation import check
from tests.contrib.lake.connect_server import running_server
from tests.contrib.lake.lakes import EARLY, LATE, archive, contents
from tests.contrib.lake.object_store import BUCKET, running_store

# Refreshes and compacts by many small tasks, in a process of its own.
PROGRAM = """
import sys
from aioqless.contrib.lake import compaction, refresh
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.session import session

url, master, *conf = sys.argv[1:]
refresh.CHUNK = 1
spark = session("test", master=master, conf=dict(each.split("=", 1) for each in conf))
print(refresh.refresh(Lake(url), lambda: spark, local_events=0).events, "events")
print(compaction.compact(Lake(url)), "files less")
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A lake on an object store, of which some events are in the tables already."""
    with running_store() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        lake = Lake(f"s3a://{BUCKET}/{tmp_path.name}", create=True)
        archive(lake, *EARLY)
        yield lake


def run_program(lake: Lake, master: str, *conf: str) -> str:
    command = [sys.executable, "-c", PROGRAM, lake.url, master, *conf]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.long
def test_executors_of_a_cluster_refresh_and_compact(lake: Lake, whole: Lake) -> None:
    # A file system that isn't there, as on clusters whose default is another one than the lake's.
    conf = ("spark.executor.memory=1g", "spark.hadoop.fs.defaultFS=hdfs://127.0.0.1:1")
    for events, number in ((EARLY, 5), (LATE, 4)):
        if events is LATE:
            archive(lake, *events)
        assert f"{number} events" in run_program(lake, "local-cluster[2,1,1024]", *conf)
    assert contents(lake) == contents(whole) and check(lake) == []


@pytest.mark.long
def test_a_spark_connect_server_refreshes_and_compacts(
    lake: Lake, whole: Lake, tmp_path: Path
) -> None:
    with running_server(tmp_path) as master:
        assert "5 events" in run_program(lake, master)
        archive(lake, *LATE)
        assert "4 events" in run_program(lake, master)
    assert contents(lake) == contents(whole) and check(lake) == []
