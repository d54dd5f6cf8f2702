"""The archive as a stream of Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aioqless import Client
from tests.contrib.lake.conftest import needs_spark
from tests.contrib.lake.test_events import complete_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = needs_spark(4, 2)


class Heard:
    """What each batch of a query held."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[int]]] = []
        self.fails_at: int | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.batches.append(
            (number, sorted(row.ordinal for row in batch.select("ordinal").collect()))
        )
        if number == self.fails_at:
            raise RuntimeError("it went wrong just here")

    @property
    def ordinals(self) -> list[list[int]]:
        return [ordinals for _, ordinals in self.batches]


def run(spark: SparkSession, client: Client, checkpoint: Path, each: Heard, **options: Any) -> Any:
    """Read the present entries, batch by batch."""
    stream = (
        spark.readStream.format("aioqless")
        .option("url", client.url)
        .option("namespace", client.namespace)
        .options(**options)
    )
    query = (
        stream.load("events")
        .writeStream.foreachBatch(each)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


async def test_a_failed_query_reads_the_same_batch_again_and_continues(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    await complete_jobs(client, 25)
    heard = Heard()
    heard.fails_at = 1
    with pytest.raises(Exception, match="just here"):
        run(spark, client, tmp_path, heard, maxEntries=10, entriesPerTask=4)
    await complete_jobs(client, 2)
    heard.fails_at = None
    run(spark, client, tmp_path, heard, maxEntries=10, entriesPerTask=4)
    first, second, third = list(range(1, 11)), list(range(11, 21)), list(range(21, 28))
    assert heard.batches == [(0, first), (1, second), (1, second), (2, third)]


async def test_only_committed_entries_are_trimmed(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    await complete_jobs(client, 25)
    heard = Heard()
    run(spark, client, tmp_path / "a", heard, maxEntries=10, trim="true", reader="lake")
    assert heard.ordinals == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]
    assert (
        1 <= await client.redis.xlen(f"{client.namespace}:x:archive") <= 15
    )  # the last batch is trimmed with the next
    with pytest.raises(Exception, match="does not own this archive"):
        run(spark, client, tmp_path / "b", Heard(), trim="true", reader="another", maxEntries=2)


async def test_the_progress_has_the_number_of_lost_entries(
    client: Client, spark: SparkSession, tmp_path: Path
) -> None:
    await complete_jobs(client, 5)
    heard = Heard()
    run(spark, client, tmp_path, heard)
    await complete_jobs(client, 5)
    await client.redis.xtrim(f"{client.namespace}:x:archive", maxlen=2, approximate=False)
    query = run(spark, client, tmp_path, heard)
    assert heard.ordinals == [[1, 2, 3, 4, 5], [9, 10]]
    assert '"lost": 3' in query.lastProgress["sources"][0]["endOffset"]
    await complete_jobs(client, 5)
    await client.redis.xtrim(f"{client.namespace}:x:archive", maxlen=2, approximate=False)
    with pytest.raises(Exception, match=r"3 events after .* failOnLoss is true"):
        run(spark, client, tmp_path, heard, failOnLoss="true")
