"""Many small files of a day become one; the events in them stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from aioqless.contrib.lake.bronze import batches_of, merged_name
from aioqless.contrib.lake.lake import Lake, Partition
from aioqless.contrib.lake.lake_reader import rows
from aioqless.contrib.lake.refresh_state import EVENTS, Progress
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.transaction import Changes, changing

_LARGEST: Final = 5_000_000  # rows of a file


def compact(spark: SparkSession, lake: Lake, tell: Callable[[str], None] = lambda _: None) -> int:
    """Merge the files of each day of events that is over. Returns how many files there are less.

    A day is over when the archiver's latest batch is of later days: that one alone may be written
    again, so an archiver may be at work meanwhile. Raises LakeError while tables are made, since
    these are being read then."""
    spared = 0
    with changing(lake, "tables") as changes:
        for partition in (
            each
            for each in lake.partitions(EVENTS)
            if _is_over(lake, each) and len(lake.files(each)) > 1
        ):
            tell(f"{partition.folder}: {len(lake.files(partition))} files")
            spared += _merge(spark, changes, partition)
    return spared


def _is_over(lake: Lake, partition: Partition) -> bool:
    latest: dict[int, list[Partition]] = {}
    for each in (
        *lake.partitions(EVENTS, partition.namespace),
        *lake.partitions("quarantine/events", partition.namespace),
    ):
        for file in lake.files(each):
            if batches := batches_of(file):
                latest.setdefault(batches[1], []).append(each)
    return not latest or partition.date < min(each.date for each in latest[max(latest)])


def _merge(spark: SparkSession, changes: Changes, partition: Partition) -> int:
    progress = Progress(changes.lake)
    state, files = progress.files(partition), changes.lake.files(partition)
    folder = changes.folder()
    columns = TABLES[partition.table].columns.names
    merged = (
        rows(spark, changes.lake, partition.table, [partition])
        .select(*columns)
        .coalesce(1)
        .sortWithinPartitions("ordinal")
    )
    merged.write.option("maxRecordsPerFile", _LARGEST).parquet(str(folder))
    # By that name the archiver knows that it needn't write these batches again.
    batches = [each for file in files if (each := batches_of(file))]
    for number, part in enumerate(sorted(folder.glob("*.parquet"))):
        part.rename(folder / merged_name(batches, number))
    changes.replace(partition, folder)
    progress.rewritten(partition, state)
    return len(files) - len(changes.lake.files(partition))
