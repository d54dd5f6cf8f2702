"""A program with executors that are processes; prints what it found as JSON.

`python -m tests.contrib.lake.cluster URL NAMESPACE`
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioqless.contrib.lake.session import session
from tests.contrib.lake.conftest import FAST, FAST_JAVA

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1_500


def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition; the first attempt fails half way."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task
    for batch in batches:
        yield batch.slice(0, batch.num_rows // 2)
        if task.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")
        yield batch.slice(batch.num_rows // 2)


def locate(_: Any) -> Iterator[tuple[str, str]]:
    """Yield the folder of the executor that runs a task, and the file of the package."""
    import aioqless

    yield str(Path.cwd()), aioqless.__file__


def main(url: str, namespace: str) -> None:
    spark = session(
        "cluster",
        master="local-cluster[2,1,512]",
        conf={
            **FAST,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": FAST_JAVA,
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        },
    )
    options = {"url": url, "namespace": namespace}
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id as n").mapInArrow(fail_once, "n long")
    rows.write.format("aioqless").mode("append").options(queue="bulk", klass="k", **options).save()
    jobs = spark.read.format("aioqless").options(partitions=4, **options).load("jobs")
    from pyspark.sql import functions as F

    read = jobs.select("jid", F.spark_partition_id().alias("part")).collect()
    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(locate).collect()
    found = {
        "jobs": len({row.jid for row in read}),
        "parts": sorted(Counter(row.part for row in read).values()),
        "executors": len({place for place, _ in places}),
        "from": sorted({file for _, file in places}),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
