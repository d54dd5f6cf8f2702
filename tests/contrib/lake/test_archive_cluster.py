"""Archiving by executors in other processes, and by those of a Spark Connect server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from aioqless import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import EVENTS
from aioqless.store import Keys
from tests.contrib.lake.archiver_process import ArchiverProcess, Target
from tests.contrib.lake.connect_server import running_server
from tests.contrib.lake.lake_readers import read_with_delta_rs
from tests.contrib.lake.object_store import BUCKET, running_store

ENTRIES = 60_000


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a lake on an object store."""
    with running_store() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3a://{BUCKET}/{tmp_path.name}"


async def add_entries(client: Client, number: int) -> None:
    now = f"{time.time():.6f}"
    times = {"put": now, "popped": now, "ended": now}
    entry: dict[Any, Any] = {"v": "1", "what": "complete", "klass": "K", "queue": "q", **times}
    async with client.redis.pipeline(transaction=False) as pipeline:
        for at in range(number):
            pipeline.xadd(
                Keys(client.internals.store.namespace)("archive"), {**entry, "jid": f"j{at}"}
            )
        await pipeline.execute()


def check(lake: str) -> None:
    rows = read_with_delta_rs(Lake(lake), EVENTS, ("ordinal", "jid"))
    assert rows == [(number + 1, f"j{number}") for number in range(ENTRIES)]
    assert len(Lake(lake).snapshot(EVENTS).all_files) == 3, "each share is a task's"


@pytest.mark.long
async def test_executors_of_a_cluster_archive_to_an_object_store(client: Client, lake: str) -> None:
    await add_entries(client, ENTRIES)
    target = Target(str(client.url), client.namespace, lake)
    cluster = ("--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=1g")
    # A file system that isn't there, as on clusters whose default is another one than the lake's.
    elsewhere = ("--conf", "spark.hadoop.fs.defaultFS=hdfs://127.0.0.1:1")
    archiver = ArchiverProcess(target, *cluster, *elsewhere)
    assert await asyncio.to_thread(archiver.wait) == 0, archiver.lines
    check(lake)


@pytest.mark.long
async def test_a_spark_connect_server_archives_to_an_object_store(
    client: Client, lake: str, tmp_path: Path
) -> None:
    await add_entries(client, ENTRIES)
    target = Target(str(client.url), client.namespace, lake)
    with running_server(tmp_path) as master:
        archiver = ArchiverProcess(target, "--master", master)
        assert await asyncio.to_thread(archiver.wait) == 0, archiver.lines
    check(lake)
