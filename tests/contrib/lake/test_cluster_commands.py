"""The pipeline's commands on a lake in an object store, with executors that are other processes.

They are those of a cluster, or of a Spark Connect server. Each starts once; the long tests are
about more events and more commands.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from aioqless import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.reconciliation import check
from aioqless.contrib.lake.schema import EVENTS
from tests.contrib.lake.conftest import FAST, FAST_JAVA
from tests.contrib.lake.connect_server import running_server
from tests.contrib.lake.test_events import complete_jobs

CLUSTER = {
    **FAST,
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": FAST_JAVA,
    # A file system that isn't there, as on clusters whose default is another one than the lake's.
    "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:1",
}


async def archive_and_query(
    client: Client, lake: str, folder: Path, *master: str, conf: Iterable[str]
) -> None:
    """Run the commands for three jobs in two batches, all in one process."""
    await complete_jobs(client, 3)
    rows = folder / "rows.csv"
    rows.write_text("n\n1\n2\n")
    source = ("--url", str(client.url), "--namespace", client.namespace, "--entries", "2")
    commands = [
        ["archive", *source, *conf],
        ["tables"],
        ["compact"],
        ["stats", "--since", "yesterday"],
        ["put", rows.as_uri(), *source[:4], "--queue", "bulk", "--klass", "K"],
    ]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.contrib.lake.lake_commands"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    given = json.dumps(
        [
            [
                *each,
                *(() if each[0] == "put" else ("--lake", lake)),
                *(master if each[0] in ("archive", "tables", "put") else ()),
            ]
            for each in commands
        ]
    )
    out, complaints = await asyncio.wait_for(process.communicate(given.encode()), 300)
    assert process.returncode == 0, complaints.decode()[-3000:]
    archived, tables, compacted, _, statistics, put = out.decode().splitlines()
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
    conf = [part for each in CLUSTER.items() for part in ("--conf", "=".join(each))]
    await archive_and_query(
        client, stored_lake, tmp_path, "--master", "local-cluster[1,1,1024]", conf=conf
    )


async def test_a_spark_connect_server_does_the_work_of_each_command(
    client: Client, stored_lake: str, tmp_path: Path
) -> None:
    with running_server(tmp_path, FAST) as master:
        await archive_and_query(client, stored_lake, tmp_path, "--master", master, conf=())
