"""The pipeline's commands on a lake in an object store, with executors that are other processes.

They are those of a cluster, or of a Spark Connect server. Each starts once; the long tests are
about more events and more commands.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.read.reconciliation import check
from aioqless.contrib.lake.schema import EVENTS
from tests.contrib.lake.lakes import FAST, FAST_JAVA, complete_jobs
from tests.contrib.lake.servers import options_of, running_spark_connect
from tests.programs import needs

pytestmark = [needs("java"), pytest.mark.long]

CLUSTER = {
    **FAST,
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": FAST_JAVA,
    # A file system that isn't there, as on clusters whose default is another one than the lake's.
    "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:1",
}
# Runs the commands of a list in one process, which starts Spark once.
RUN = """
import json, sys
from aioqless.cli.main import main

for command in json.load(sys.stdin):
    sys.argv = ["aioqless", "lake", *command]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


async def archive_and_query(
    client: Client, lake: str, folder: Path, *master: str, conf: Sequence[str] = ()
) -> None:
    """Run the commands for three jobs in two batches."""
    await complete_jobs(client, 3)
    rows = folder / "rows.csv"
    rows.write_text("n\n1\n2\n")
    source, place = ("--url", str(client.url), "--namespace", client.namespace), ("--lake", lake)
    commands = [
        ["archive", *source, "--entries", "2", *conf, *place, *master],
        ["tables", *place, *master],
        ["prune", *place],
        ["stats", "--since", "yesterday", *place],
        ["put", rows.as_uri(), *source, "--queue", "bulk", "--klass", "K", *master],
    ]
    temporary = folder / "temporary"
    temporary.mkdir()
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", RUN],
        input=json.dumps(commands), capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"TMPDIR": str(temporary)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert not list(temporary.rglob("aioqless.zip")), "the package that executors get is deleted"
    archived, tables, compacted, _, statistics, put = ran.stdout.splitlines()
    assert archived.startswith("3 events in 2 batches")
    assert tables.startswith("3 events: tables of")
    assert compacted == "1 files less" and len(Lake(lake).table(EVENTS).all_files) == 1
    assert statistics.split()[:3] == ["mail", "3", "3"]
    assert put == "2 put, 0 existed, 0 rejected" and await client.queue("bulk").length() == 2
    assert check(Lake(lake)) == []


async def test_executors_of_a_cluster_do_the_work_of_each_command(
    client: Client, stored_lake: str, tmp_path: Path
) -> None:
    # The long tests have two executors, which take a quarter more time.
    master = ("--master", "local-cluster[1,1,1024]")
    await archive_and_query(client, stored_lake, tmp_path, *master, conf=options_of(CLUSTER))


async def test_a_spark_connect_server_does_the_work_of_each_command(
    client: Client, stored_lake: str, tmp_path: Path
) -> None:
    with running_spark_connect(tmp_path, FAST) as url:
        await archive_and_query(client, stored_lake, tmp_path, "--master", url)
