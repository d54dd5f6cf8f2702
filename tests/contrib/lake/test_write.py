"""Rows of Spark as jobs, and what becomes of a URL's password."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from aioqless import Client
from aioqless.contrib.lake.source import register
from aioqless.contrib.lake.spark.session import plainly
from aioqless.errors import AioqlessError

pytestmark = pytest.mark.long

SECRET = "hunter2-is-secret"


def write(rows: DataFrame, client: Client, **options: Any) -> None:
    given = {"url": client.url, "namespace": client.namespace, **options}
    rows.write.format("aioqless").mode("append").options(**given).save()


async def allowed(client: Client) -> str:
    """A URL with the password of a user who may do everything."""
    every: dict[str, Any] = {"keys": ["*"], "channels": ["*"], "categories": ["+@all"]}
    passwords = [f"+{SECRET}"]
    await client.redis.acl_setuser(client.namespace, enabled=True, passwords=passwords, **every)
    scheme, _, rest = str(client.url).partition("://")
    return f"{scheme}://{client.namespace}:{SECRET}@{rest}"


async def test_rows_that_are_written_twice_become_jobs_once(
    client: Client, spark: SparkSession
) -> None:
    rows = spark.range(500).selectExpr("id", "cast(id % 3 as double) as priority")
    for _ in range(2):
        write(rows, client, queue="mail", klass="app.send", tags="bulk")
    assert await client.queue("mail").length() == 500
    (first,) = await client.queue("mail").pop(1)
    assert (first.klass, first.priority, first.tags) == ("app.send", 0, ["bulk"])
    await first.complete()
    with pytest.raises(AioqlessError, match="write with mode"), plainly():
        rows.write.format("aioqless").mode("overwrite").options(queue="q", klass="k").save()


async def test_rows_are_written_from_another_thread_that_registers_the_source(
    client: Client, spark: SparkSession
) -> None:
    def write_there() -> None:
        register(spark)
        write(spark.range(3), client, queue="mail", klass="app.send")

    await asyncio.to_thread(write_there)
    assert await client.queue("mail").length() == 3


@pytest.mark.skipif(pyspark.__version__.startswith("4.0"), reason="Spark 4.1 or later is needed")
async def test_rows_of_a_stream_become_jobs(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(20).write.parquet(str(tmp_path / "rows"))
    rows = spark.readStream.schema("id long").parquet(str(tmp_path / "rows"))
    stream = rows.writeStream.format("aioqless").options(url=client.url, queue="mail", klass="k")
    stream = stream.options(namespace=client.namespace, checkpointLocation=str(tmp_path / "at"))
    stream.trigger(availableNow=True).start().awaitTermination()
    assert await client.queue("mail").length() == 20


async def test_plans_and_errors_do_not_have_the_password(
    client: Client, spark: SparkSession
) -> None:
    url = await allowed(client)
    await client.queue("q").put("k", jid="a")
    shown: list[str] = []
    reader = spark.read.format("aioqless").option("url", url).option("namespace", client.namespace)
    jobs = reader.load("jobs").where("state = 'waiting'")
    assert jobs.count() == 1
    shown.append(jobs._jdf.queryExecution().toString())  # noqa: SLF001  # Spark's plan
    for wrong in (
        url.replace(SECRET, f"{SECRET}x"),
        f"redis://:{SECRET}@127.0.0.1:1/0",
        f"rdis://:{SECRET}@there",
    ):
        with pytest.raises(Exception) as refused:
            spark.read.format("aioqless").option("url", wrong).load("jobs").count()
        shown.append(str(refused.value))
    shown.append(str(spark.sparkContext.getConf().getAll()))
    assert not [text for text in shown if SECRET in text]
