"""Jobs and summaries as tables of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioqless import Client, NewJob
from aioqless.contrib.lake.session import plainly
from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, client: Client, table: str, **options: Any) -> DataFrame:
    reader = (
        spark.read.format("aioqless")
        .option("url", client.url)
        .option("namespace", client.namespace)
    )
    return reader.options(**options).load(table)


async def test_filters_return_the_same_jobs_with_and_without_an_index(
    client: Client, spark: SparkSession
) -> None:
    mail = client.queue("mail")
    await mail.put_many(
        [NewJob("greet", {"n": n}, tags=["even"] if n % 2 == 0 else None) for n in range(3000)]
    )
    await client.queue("news").put("greet", jid="n1", delay=60)
    (failing, *done) = await mail.pop(11)
    await failing.fail("no", group="broken")
    for job in done:
        await job.complete()
    jobs = read(spark, client, "jobs", partitions=2).cache()
    assert (
        jobs.rdd.getNumPartitions() == 2
        and jobs.count() == 3001 == jobs.select("jid").distinct().count()
    )
    assert all(
        jobs.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).map(lambda n: n > 200).collect()
    )
    since = jobs.where("state = 'complete'").agg({"time": "max"}).collect()[0][0]
    for condition in (
        "queue = 'mail'",
        "queue = 'mail' and state = 'waiting'",
        "queue in ('news', 'none')",
        "state = 'failed'",
        "state = 'complete'",
        f"state = 'complete' and time >= timestamp'{since}'",
        "jid = 'n1'",
        "state in ('failed', 'complete')",
        "state = 'scheduled'",
    ):
        indexed = sorted(read(spark, client, "jobs").where(condition).collect())
        assert indexed == sorted(jobs.where(condition).collect()) != [], condition
    assert read(spark, client, "jobs", tag="even").count() == 1500
    few = (
        spark.read.format("aioqless")
        .schema("jid string, priority double")
        .option("url", client.url)
    )
    assert few.option("namespace", client.namespace).load("jobs").where("jid = 'n1'").collect() == [
        ("n1", 0.0)
    ]


async def test_queues_workers_failures_stats_and_recurring_jobs_are_tables(
    client: Client, spark: SparkSession
) -> None:
    mail = client.queue("mail")
    await mail.put_many([NewJob("greet") for _ in range(4)])
    await mail.recur("greet", {"x": 1}, jid="r", every=60, offset=60)
    (done, failing, retried) = await mail.pop(3, worker="ann")
    await retried.retry(delay=600)
    (retried,) = await mail.pop(1, worker="ann")
    await done.complete()
    await failing.fail("no", group="broken")
    (queue,) = read(spark, client, "queues").collect()
    assert (queue.name, queue.waiting, queue.running, queue.recurring, queue.paused) == (
        "mail",
        0,
        1,
        1,
        False,
    )
    (worker,) = read(spark, client, "workers").collect()
    assert (worker.name, worker.jobs, worker.stalled) == ("ann", 1, 0) and worker.seen is not None
    assert read(spark, client, "failures").collect() == [("broken", 1, failing.jid)]
    (day,) = read(spark, client, "stats", days=2).collect()
    own = await mail.stats()
    assert (day.queue, day.failures, day.run["count"], day.wait["mean"]) == (
        "mail",
        1,
        1,
        own.wait.mean,
    )
    assert (day.retries, day.lost_locks, day.explicit_retries) == (1, 0, 1)
    assert list(day["run"]["histogram"]) == list(map(int, own.run.histogram))
    (template,) = read(spark, client, "recurring").collect()
    assert (template.jid, template.interval, template.data, template.paused) == (
        "r",
        60.0,
        '{"x":1}',
        False,
    )


async def test_invalid_loads_are_refused_in_one_line(client: Client, spark: SparkSession) -> None:
    cases: list[tuple[Any, str]] = [
        (
            lambda: read(spark, client, "jbs"),
            "there is no table 'jbs' here: load one of jobs, queues",
        ),
        (
            lambda: read(spark, client, "jobs", partition=3).count(),
            "there is no option 'partition' here; there are namespace, partitions",
        ),
        (
            lambda: read(spark, client, "jobs", partitions="many").count(),
            "partitions must be an integer >= 1",
        ),
        (lambda: read(spark, client, "events").count(), "events are read as a stream"),
        (
            lambda: (
                spark.read.format("aioqless").schema("jid string, retries int").load("jobs").count()
            ),
            "the column 'retries' is int64, not int32",
        ),
    ]
    for act, message in cases:
        with pytest.raises(AioqlessError) as refused, plainly():
            act()
        assert str(refused.value).startswith(message) and "\n" not in str(refused.value), (
            refused.value
        )
