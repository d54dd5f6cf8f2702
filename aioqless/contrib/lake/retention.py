"""Deletes old days of a lake, or only the payloads of old events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.refresh import DERIVED, first_day, position_name, pruned_name
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.contrib.lake.snapshot import DataFile, Snapshot, retry_conflicts
from aioqless.contrib.lake.storage import LakeError
from aioqless.contrib.lake.table_files import FileWriter, as_actions, read_table

LAYERS: Final = ("bronze", "quarantine", "silver", "gold")
_PAYLOADS: Final = {EVENTS: ("data", "history"), QUARANTINE: ("raw",)}


def prune(
    lake: Lake,
    before: date,
    namespace: str | None = None,
    layers: Collection[str] = LAYERS,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Delete the days before a date. Return the number of deleted rows.

    Later events that are about these days are not added to them any more. Versions of the tables
    from before still have the days, until they are vacuumed.

    Args:
        lake: The lake.
        before: The first day to keep.
        namespace: The namespace; all unless given.
        layers: The layers to prune.
        progress: Called with a line of text for each table.

    Raises:
        LakeError: Events of these days are not in the tables yet.
        ConcurrentCommit: Other processes change the tables all the time.
    """
    if "bronze" in layers:
        files = lake.snapshot(EVENTS).files(within=namespace)
        _require_refreshed(lake, [each for each in files if each.date < before])
    deleted = 0
    # Silver and gold go first: a rebuild makes no days again of which bronze is gone.
    for name in reversed(TABLES):
        if name.partition("/")[0] in layers:
            rows = retry_conflicts(partial(_prune_table, lake, name, before, namespace))
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
        files = retry_conflicts(partial(_drop_columns, lake, name, columns, before, namespace))
        if files:
            progress(f"{name}: {files:,} files")
        written += files
    return written


def _prune_table(lake: Lake, name: str, before: date, namespace: str | None) -> int:
    snapshot = lake.snapshot(name)
    removed = [each for each in snapshot.files(within=namespace) if each.date < before]
    if not removed:
        return 0
    days = (before - date(1970, 1, 1)).days
    first_days = {
        pruned_name(each): days
        for each in {file.namespace for file in removed}
        if (first_day(snapshot, each) or date.min) < before
    }
    snapshot.commit((), removed, first_days)
    return sum(each.rows for each in removed)


def _require_refreshed(lake: Lake, files: Sequence[DataFile]) -> None:
    """Raise LakeError if there are events in these files that a table doesn't have yet."""
    last: dict[str, int] = {}
    for each in files:
        last[each.namespace] = max(last.get(each.namespace, 0), each.greatest["ordinal"])
    for name in DERIVED:
        snapshot = lake.snapshot(name)
        for namespace, ordinal in last.items():
            if (snapshot.transaction(position_name(namespace)) or 0) < ordinal:
                raise LakeError(
                    f"{name} doesn't have all events of {namespace} that would be deleted: "
                    "run `aioqless lake tables` first"
                )


def _drop_columns(
    lake: Lake, name: str, columns: Sequence[str], before: date, namespace: str | None
) -> int:
    snapshot = lake.snapshot(name)
    old = [each for each in snapshot.files(within=namespace) if each.date < before]
    removed = [each for each in old if _has_values(snapshot, each, columns)]
    if not removed:
        return 0
    writer = FileWriter(snapshot.storage, snapshot.table)
    for file in removed:
        rows = read_table(snapshot.storage, snapshot.table, [file])
        for column in columns:
            at = rows.schema.get_field_index(column)
            kind = rows.schema.field(at).type
            rows = rows.set_column(at, column, pa.nulls(rows.num_rows, kind))
        for batch in rows.combine_chunks().to_batches():
            writer.add(batch)
    snapshot.commit(as_actions(writer.finish().to_pylist()), removed)
    return len(removed)


def _has_values(snapshot: Snapshot, file: DataFile, columns: Sequence[str]) -> bool:
    """Whether a file has a value in one of the columns, by the statistics in its footer."""
    with snapshot.storage.filesystem.open_input_file(file.path) as opened:
        footer = pq.ParquetFile(opened).metadata
        for group in range(footer.num_row_groups):
            row_group = footer.row_group(group)
            for number in range(row_group.num_columns):
                column = row_group.column(number)
                if column.path_in_schema in columns:
                    nulls = column.statistics.null_count if column.statistics else 0
                    if nulls < row_group.num_rows:
                        return True
    return False
