"""The archive as a stream of Spark: each entry is read once, over restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from aioqless import Client, NewJob
from aioqless.contrib.lake.source import register


async def end_jobs(client: Client, number: int) -> list[str]:
    queue = client.queue("mail")
    jids = await queue.put_many([NewJob("greet", {"n": n}) for n in range(number)])
    for job in await queue.pop(number):
        await job.complete()
    return sorted(jids)


def read_new(spark: SparkSession, client: Client, folder: Path) -> list[str]:
    """Read what came since the last time, and return the jobs of all entries that were read."""
    register(spark)
    rows = spark.readStream.format("aioqless").options(url=client.url, namespace=client.namespace)
    stream = rows.load("archive").select("jid").writeStream.format("parquet")
    stream = stream.options(path=str(folder / "read"), checkpointLocation=str(folder / "at"))
    stream.trigger(availableNow=True).start().awaitTermination()
    return sorted(pq.read_table(folder / "read")["jid"].to_pylist())


async def test_a_stream_reads_each_entry_once(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    await client.config.set("archive", "on")
    first = await end_jobs(client, 30)
    assert await asyncio.to_thread(read_new, spark, client, tmp_path) == first
    second = await end_jobs(client, 7)
    found = await asyncio.to_thread(read_new, spark, client, tmp_path)
    assert found == sorted(first + second)


@pytest.mark.long
async def test_a_stream_whose_next_entries_were_deleted_says_how_many(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    await client.config.set("archive", "on")
    await end_jobs(client, 3)
    await asyncio.to_thread(read_new, spark, client, tmp_path)
    await end_jobs(client, 5)
    state = await client.archive.state()
    assert state.last is not None
    await client.archive.trim(state.last, "lake")
    await end_jobs(client, 1)
    with pytest.raises(StreamingQueryException, match=r"5 entries of .* were deleted"):
        await asyncio.to_thread(read_new, spark, client, tmp_path)


@pytest.mark.long
async def test_a_stream_of_an_archive_that_was_created_again_says_so(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    await client.config.set("archive", "on")
    await end_jobs(client, 3)
    await asyncio.to_thread(read_new, spark, client, tmp_path)
    await client.redis.delete(f"{client.namespace}:x:archive")
    await end_jobs(client, 1)
    with pytest.raises(StreamingQueryException, match="deleted and created again since entry"):
        await asyncio.to_thread(read_new, spark, client, tmp_path)
