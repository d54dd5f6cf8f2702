"""Merges the small files of a day into few."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import ConcurrentCommit, retry_conflicts
from aioqless.contrib.lake.schema import TABLES

VACUUM_HOURS: Final = 168  # for which files stay that earlier versions have
LEAST_HOURS: Final = 24  # readers may need a version for so long


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
        vacuum_hours: The age in hours of the oldest version that stays readable; at least 24.

    Returns:
        The number of files that the tables have less.
    """
    fewer = 0
    for name in TABLES:
        try:
            merged = retry_conflicts(partial(_optimize, lake, name))
        except ConcurrentCommit:
            progress(f"{name}: left as it is, since other processes change it all the time")
        else:
            fewer += merged
            if merged:
                progress(f"{name}: {merged} files less")
        table = lake.table(name)
        table.vacuum(max(vacuum_hours, LEAST_HOURS))
        table.delete_orphans()
    return fewer


def _optimize(lake: Lake, name: str) -> int:
    return lake.table(name).optimize()
