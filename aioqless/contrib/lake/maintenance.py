"""Merges small files of a lake, deletes old days or their payloads, and erases jobs and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import date
from functools import partial
from typing import Final

import pyarrow as pa

from aioqless.contrib.lake.erasure import COLUMNS, Erasure
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import (
    AddedFile,
    ConcurrentCommit,
    OpenTable,
    Partition,
    condition_of,
)
from aioqless.contrib.lake.position import (
    Position,
    erased_name,
    first_day,
    pruned_name,
    pruned_ordinal_name,
    pruned_rows_name,
    refreshed_name,
)
from aioqless.contrib.lake.refresh import OpenSession
from aioqless.contrib.lake.schema import (
    DERIVED,
    EVENTS,
    QUARANTINE,
    SNAPSHOTS,
    TABLES,
    WORKER_SNAPSHOTS,
)
from aioqless.contrib.lake.spark_errors import detect_deleted_files

VACUUM_HOURS: Final = 168  # for which files stay that earlier versions have; the most in Delta
LAYERS: Final = ("bronze", "quarantine", "silver", "gold")
_PAYLOADS: Final = {EVENTS: ("data", "history"), QUARANTINE: ("raw",)}
_ATTEMPTS: Final = 5


def compact(
    lake: Lake,
    progress: Callable[[str], None] = lambda _: None,
    *,
    vacuum_hours: int = VACUUM_HOURS,
) -> int:
    """Merge small files of every table, and delete files that only old versions have.

    Archivers and refreshes may run meanwhile. Files that no version has, such as those of killed
    processes, are deleted when they are a day old.

    Args:
        lake: The lake.
        progress: Called with a line of text for each table that is changed.
        vacuum_hours: The age in hours of the oldest version that stays readable, from 24 to 168.

    Returns:
        The number of files that the tables have less.
    """
    fewer = 0
    for name in TABLES:
        try:
            merged = _change(lake, name, OpenTable.optimize)
        except ConcurrentCommit:
            progress(f"{name}: left as it is, since other processes change it all the time")
        else:
            fewer += merged
            if merged:
                progress(f"{name}: {merged} files less")
        lake.table(name).delete_files(vacuum_hours)
    return fewer


def prune(
    lake: Lake,
    before: date,
    namespace: str | None = None,
    layers: Collection[str] = LAYERS,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Delete the days before a date. Return the number of deleted rows.

    Later events that are about these days are not added to them any more: refresh the tables
    first. Versions from before still have the days, until they are vacuumed.

    Args:
        lake: The lake.
        before: The first day to keep.
        namespace: The namespace; all unless given.
        layers: The layers to prune.
        progress: Called with a line of text for each table.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    deleted = 0
    # Silver and gold go first: a rebuild can't make days whose events are deleted.
    for name in reversed(TABLES):
        if name.partition("/")[0] in layers:
            rows = _change(lake, name, partial(_prune_table, before, namespace, lake))
            if rows:
                progress(f"{name}: {rows:,} rows")
            deleted += rows
    return deleted


def drop_payloads(
    lake: Lake,
    before: date,
    namespace: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Delete what jobs had as data, from events and rejected entries before a date.

    The rows stay, so that all tables can still be made of them. Return the number of files that
    were written again.
    """
    written = 0
    for name, columns in _PAYLOADS.items():
        files = _change(lake, name, partial(_drop_columns, columns, before, namespace))
        if files:
            progress(f"{name}: {files:,} files")
        written += files
    return written


def _prune_table(before: date, namespace: str | None, lake: Lake, table: OpenTable) -> int:
    """Delete days of a table, and record the first one that is left, for refreshes."""
    files, transactions = table.files(within=namespace), dict[str, int]()
    rows = Counter[str]()
    for file in files:
        rows[file.namespace] += file.rows if file.date < before else 0
    for name in {*rows, *(each.namespace for each in lake.table(EVENTS).files(within=namespace))}:
        if (first_day(table, name) or date.min) < before:
            transactions[pruned_name(name)] = (before - date(1970, 1, 1)).days
        if rows[name]:
            count = pruned_rows_name(name)
            transactions[count] = (table.transaction(count) or 0) + rows[name]
            transactions[pruned_ordinal_name(name)] = Position.of(table, name).ordinal
        if transactions and table.table.name in DERIVED:  # a refresh at work must not commit
            transactions[refreshed_name(name)] = table.transaction(refreshed_name(name)) or 0
    if rows.total():
        table.delete({each.partition for each in files if each.date < before}, transactions)
    elif transactions:
        table.append((), transactions)
    return rows.total()


def _drop_columns(
    columns: Sequence[str], before: date, namespace: str | None, table: OpenTable
) -> int:
    partitions = {each.partition for each in table.files(within=namespace) if each.date < before}
    if not partitions:
        return 0
    has_values = " OR ".join(f"{column} IS NOT NULL" for column in columns)
    where = f"({condition_of(partitions)}) AND ({has_values})"
    return table.update_rows(dict.fromkeys(columns, "NULL"), where)


def erase(
    lake: Lake,
    open_session: OpenSession,
    jids: Collection[str],
    namespace: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    *,
    tags: Collection[str] = (),
) -> int:
    """Erase jobs: their events with data and messages, their rows, and references to them.

    Sums in gold name no job: they stay until their day is computed again. Tags are taken from the
    rows of their jobs, which stay, and sums by these tags are deleted. The number of erased entries
    is recorded. Afterwards no file of the lake has the jobs; earlier versions of the changed tables
    can't be read any more.

    Args:
        lake: The lake.
        open_session: Returns a Spark session; not called if no table has the jobs or tags.
        jids: The jobs.
        namespace: The namespace of the jobs; all unless given.
        progress: Called with a line of text for each table.
        tags: The tags.

    Returns:
        The number of days of tables that had the jobs or tags.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    erased = younger = 0
    files = (each for name in TABLES for each in lake.table(name).files(within=namespace))
    names = {each.namespace for each in files}
    erasure = Erasure(frozenset(jids), frozenset(tags))
    for name in TABLES:
        days = 0
        if name not in (SNAPSHOTS, WORKER_SNAPSHOTS):  # these have no jobs
            days = _change(lake, name, partial(_erase_from, erasure, open_session, names))
        if days:
            progress(f"{name}: {days:,} days")
        younger += lake.table(name).delete_files(0)
        erased += days
    if younger:
        progress(
            f"{younger:,} files of killed or running processes may have the jobs, in no table: "
            "`aioqless lake prune` deletes them when they are a day old"
        )
    return erased


def _erase_from(
    erasure: Erasure, open_session: OpenSession, names: Collection[str], table: OpenTable
) -> int:
    """Write the days of a table again that have any of the erased; return their number."""
    files = [each for each in table.all_files if each.namespace in names]
    days = {each for each in {file.partition for file in files} if _has_any(erasure, table, each)}
    removed, added = [each for each in files if each.partition in days], list[AddedFile]()
    if removed:
        from aioqless.contrib.lake.spark.transform import rewrite

        with detect_deleted_files():
            spark = open_session(sum(each.rows for each in removed))
            added = rewrite(spark, table, removed, erasure)
    transactions = dict[str, int]()
    if "ordinal" in table.schema.names:
        erased = Counter[str]()
        for each in removed:
            erased[each.namespace] += each.rows
        for new in added:
            erased[new.namespace] -= new.rows
        for name in (name for name, entries in erased.items() if entries):
            count = erased_name(name)
            transactions[count] = (table.transaction(count) or 0) + erased[name]
    if table.table.name in DERIVED:  # a refresh that has read the jobs already must not commit
        for name in map(refreshed_name, names):
            transactions[name] = table.transaction(name) or 0
    if removed or transactions:
        table.commit(added, removed, transactions)
    return len(days)


def _has_any(erasure: Erasure, table: OpenTable, day: Partition) -> bool:
    """Whether a day of a table has any of the erased."""
    schema = pa.schema([each for each in table.schema if each.name in COLUMNS])
    if not schema.names:
        return False
    return any(erasure.erase_from(rows) is not rows for rows in table.scan({day}, schema))


def _change(lake: Lake, name: str, change: Callable[[OpenTable], int]) -> int:
    """Call a function that changes a table, again if another process changes it meanwhile.

    Raises:
        ConcurrentCommit: Another process was first at each attempt.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return change(lake.table(name))
        except ConcurrentCommit:
            continue
    return change(lake.table(name))
