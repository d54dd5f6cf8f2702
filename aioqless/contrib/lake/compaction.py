"""Merges the small files of a day into few."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import TABLES, Table
from aioqless.contrib.lake.snapshot import ConcurrentCommit, DataFile, retry_conflicts
from aioqless.contrib.lake.storage import Storage
from aioqless.contrib.lake.table_files import (
    ADDED,
    FileWriter,
    as_actions,
    collect,
    read_table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VACUUM_HOURS: Final = 168  # for which files stay that earlier versions have
LEAST_HOURS: Final = 24  # writers may take so long from writing files to committing them
_TARGET: Final = 64 * 2**20  # bytes of a merged file, about
LOCAL_BYTES: Final = 256 * 2**20  # bytes that are merged without Spark


def compact(
    lake: Lake,
    open_session: Callable[[], SparkSession],
    progress: Callable[[str], None] = lambda _: None,
    *,
    vacuum_hours: int = VACUUM_HOURS,
    local_bytes: int = LOCAL_BYTES,
) -> int:
    """Merge small files of every table, and delete files that only old versions have.

    Archivers and refreshes may run meanwhile.

    Args:
        lake: The lake.
        open_session: Returns a Spark session; called only when there is much to merge.
        progress: Called with a line of text for each table that is changed.
        vacuum_hours: The age in hours of the oldest version that stays readable; at least 24.
        local_bytes: The bytes of a table up to which this process merges its files.

    Returns:
        The number of files that the tables have less.
    """
    fewer = 0
    for name in TABLES:
        try:
            fewer += retry_conflicts(
                partial(_compact_table, lake, name, open_session, progress, local_bytes)
            )
        except ConcurrentCommit:
            progress(f"{name}: left as it is, since other processes change it all the time")
        lake.snapshot(name).vacuum(max(vacuum_hours, LEAST_HOURS))
    return fewer


def _compact_table(
    lake: Lake,
    name: str,
    open_session: Callable[[], SparkSession],
    progress: Callable[[str], None],
    local_bytes: int,
) -> int:
    snapshot = lake.snapshot(name)
    groups = _group(snapshot.all_files)
    if not groups:
        return 0
    removed = [file for group in groups for file in group]
    progress(f"{name}: {len(removed)} files")
    merging = partial(_merge, snapshot.storage, snapshot.table, groups)
    is_small = sum(file.size for file in removed) <= local_bytes
    added = collect(len(groups), merging, ADDED, None if is_small else open_session())
    snapshot.commit(as_actions(added), removed)
    return len(removed) - len(added)


def _group(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Return groups of small files of one partition that become one file each."""
    groups: list[list[DataFile]] = []
    small = [each for each in files if each.size < _TARGET // 2]
    for file in sorted(small, key=_partition_and_first):
        last = groups[-1] if groups else []
        same = last and (last[0].namespace, last[0].date) == (file.namespace, file.date)
        if same and sum(each.size for each in last) + file.size <= _TARGET:
            last.append(file)
        else:
            groups.append([file])
    return [group for group in groups if len(group) > 1]


def _partition_and_first(file: DataFile) -> tuple[object, ...]:
    return file.namespace, file.date, file.least.get("ordinal") or 0, file.path


def _merge(
    storage: Storage, table: Table, groups: Sequence[Sequence[DataFile]], number: int
) -> Iterator[pa.RecordBatch]:
    """Write the rows of a group's files as one file."""
    rows = read_table(storage, table, groups[number])
    writer = FileWriter(storage, table)
    for batch in rows.combine_chunks().to_batches():
        writer.add(batch)
    yield writer.finish()
