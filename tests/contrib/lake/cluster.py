"""A program with executors of its own: `python -m tests.contrib.lake.cluster URL NAMESPACE FOLDER`
prints what it found as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioqless.contrib.lake.session import session
from tests.contrib.lake.conftest import LITTLE, QUICK

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1_500


def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a partition; its first attempt ends before the last of them."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task
    for batch in batches:
        yield batch.slice(0, batch.num_rows // 2)
        if task.attemptNumber() == 0:
            raise RuntimeError("this attempt ends here")
        yield batch.slice(batch.num_rows // 2)


def where(_: Any) -> Iterator[tuple[str, str]]:
    """On which executor a task runs, and from where it has the package."""
    import aioqless

    yield str(Path.cwd()), aioqless.__file__


def main(url: str, namespace: str, folder: str) -> None:
    spark = session(
        "cluster",
        master="local-cluster[2,1,512]",
        conf={
            **QUICK,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": LITTLE,
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        },
    )
    options = {"url": url, "namespace": namespace}
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id as n").mapInArrow(fails_once, "n long")
    rows.write.format("aioqless").mode("append").options(queue="bulk", klass="k", **options).save()
    jobs = spark.read.format("aioqless").options(partitions=4, **options).load("jobs")
    from pyspark.sql import functions as F

    read = jobs.select("jid", F.spark_partition_id().alias("part")).collect()
    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
    batches: list[int] = []
    events = (
        spark.readStream.format("aioqless").options(entriesPerTask=50, **options).load("events")
    )
    query = events.writeStream.foreachBatch(lambda batch, _: batches.append(batch.count()))
    query.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()
    told = {
        "jobs": len({row.jid for row in read}),
        "parts": sorted(Counter(row.part for row in read).values()),
        "executors": len({place for place, _ in places}),
        "from": sorted({file for _, file in places}),
        "events": batches,
    }
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
