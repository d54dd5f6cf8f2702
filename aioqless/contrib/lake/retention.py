"""Deletes old days of a lake, or only the payloads of old events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from functools import partial
from typing import Final

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import condition_of, retry_conflicts
from aioqless.contrib.lake.position import first_day, pruned_name
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES

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
    table = lake.table(name)
    removed = [each for each in table.files(within=namespace) if each.date < before]
    if not removed:
        return 0
    days = (before - date(1970, 1, 1)).days
    first_days = {
        pruned_name(each): days
        for each in {file.namespace for file in removed}
        if (first_day(table, each) or date.min) < before
    }
    table.delete({each.partition for each in removed}, first_days)
    return sum(each.rows for each in removed)


def _drop_columns(
    lake: Lake, name: str, columns: Sequence[str], before: date, namespace: str | None
) -> int:
    table = lake.table(name)
    partitions = {each.partition for each in table.files(within=namespace) if each.date < before}
    if not partitions:
        return 0
    has_values = " OR ".join(f"{column} IS NOT NULL" for column in columns)
    where = f"({condition_of(partitions)}) AND ({has_values})"
    return table.update_rows(dict.fromkeys(columns, "NULL"), where)
