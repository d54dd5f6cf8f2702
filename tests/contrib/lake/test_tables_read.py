"""Jobs as a table of Spark, and its errors."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from aioqless import Client, NewJob
from aioqless.contrib.lake.spark.session import plainly, session
from aioqless.errors import AioqlessError


def read(spark: SparkSession, client: Client, table: str, **options: Any) -> DataFrame:
    given = {"url": client.url, "namespace": client.namespace, **options}
    return spark.read.format("aioqless").options(**given).load(table)


async def test_jobs_are_rows_that_spark_filters(client: Client, spark: SparkSession) -> None:
    mail = client.queue("mail")
    await mail.put_many([NewJob("greet", {"n": n}) for n in range(3000)])
    await client.queue("news").put("greet", jid="n1", delay=60)
    (failing, *done) = await mail.pop(11)
    await failing.fail("no", group="broken")
    for job in done:
        await job.complete()
    jobs = read(spark, client, "jobs", partitions=2).cache()
    assert jobs.count() == 3001 == jobs.select("jid").distinct().count()
    sizes = [row["count"] for row in jobs.groupBy(spark_partition_id()).count().collect()]
    assert len(sizes) == 2 and min(sizes) > 200
    for condition, number in (
        ("queue = 'mail' and state = 'waiting'", 2989),
        ("state = 'failed'", 1),
        ("jid = 'n1' and state = 'scheduled'", 1),
    ):
        assert read(spark, client, "jobs").where(condition).count() == number, condition
    few = spark.read.format("aioqless").schema("jid string, priority double")
    named = few.options(url=client.url, namespace=client.namespace).load("jobs")
    assert named.where("jid = 'n1'").collect() == [("n1", 0.0)]


async def test_invalid_loads_are_refused_in_one_line(client: Client, spark: SparkSession) -> None:
    typed = spark.read.format("aioqless").schema("jid string, retries int")
    cases: list[tuple[Any, str]] = [
        (lambda: read(spark, client, "jbs"), "there is no table 'jbs' here: load('jobs')"),
        (
            lambda: read(spark, client, "jobs", partition=3).count(),
            "there is no option 'partition' here; there are namespace, partitions, url",
        ),
        (
            lambda: read(spark, client, "jobs", partitions="many").count(),
            "partitions must be int (got 'many')",
        ),
        (lambda: typed.load("jobs").count(), "the column 'retries' is int64, not int32"),
    ]
    for act, message in cases:
        with pytest.raises(AioqlessError) as refused, plainly():
            act()
        assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(AioqlessError, match="Spark needs Java 17 or later"):
        session()
