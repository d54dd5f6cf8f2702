"""Erases jobs and tags from every table of a lake, and from the old versions of the tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import erased_name
from aioqless.contrib.lake.refresh import DERIVED, position_name
from aioqless.contrib.lake.schema import EVENTS, TABLES, Table
from aioqless.contrib.lake.snapshot import DataFile, Snapshot, retry_conflicts
from aioqless.contrib.lake.storage import Storage
from aioqless.contrib.lake.table_files import (
    ADDED,
    FileWriter,
    as_actions,
    collect,
    read_table,
)

_JIDS: Final = ("jid", "depends", "spawned_from")  # columns that name jobs
_TAGS: Final = ("tag", "tags")
_ROWS: Final = ("samples",)  # columns of rows that have such columns
_RAW: Final = "raw"  # of a rejected entry, which is JSON
_FOUND: Final = pa.schema(
    [pa.field("replaced", pa.string()), pa.field("entries", pa.int64()), *ADDED]
)


@dataclass(frozen=True)
class _Erased:
    """What is erased, and how to find it in rows and to take it from them."""

    jids: set[str]
    tags: set[str]

    @property
    def columns(self) -> Iterator[str]:
        """The columns that may name what is erased."""
        yield from (*(_JIDS if self.jids else ()), *(_TAGS if self.tags else ()), *_ROWS)

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether a row goes: that of a job, or sums by a tag."""
        return row.get("jid") in self.jids or row.get("tag") in self.tags

    def mask(self, rows: pa.Table) -> pa.Array:
        """Return which rows name any of it, in any of the columns."""
        found = np.zeros(rows.num_rows, bool)
        for name in rows.column_names:
            if name == _RAW:
                found |= [self._is_in_raw(raw) for raw in rows[name].to_pylist()]
            else:
                found |= self._find(name, rows[name].combine_chunks())
        return pa.array(found)

    def without(self, value: Any, name: str = "") -> Any:
        """Return a row, or the value of a column of it, without references to what is erased."""
        if isinstance(value, Mapping):
            return {key: self.without(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [
                self.without(each)
                for each in value
                if not (self.is_of(each) if isinstance(each, Mapping) else each in self._of(name))
            ]
        return None if isinstance(value, str) and value in self._of(name) else value

    def _of(self, name: str) -> set[str]:
        return self.jids if name in _JIDS else self.tags if name in _TAGS else set()

    def _find(self, name: str, column: pa.Array) -> Any:
        if pa.types.is_list(column.type):
            parents, each = pc.list_parent_indices(column), pc.list_flatten(column)
            found = np.zeros(len(column), bool)
            found[parents.to_numpy()[self._find(name, each)]] = True
            return found
        if pa.types.is_struct(column.type):
            fields = [each for each in self.columns if column.type.get_field_index(each) >= 0]
            masks = [self._find(each, pc.struct_field(column, each)) for each in fields]
            return np.logical_or.reduce(masks) if masks else np.zeros(len(column), bool)
        if not pa.types.is_string(column.type):  # a number of jobs
            return np.zeros(len(column), bool)
        values = pa.array(sorted(self._of(name)), pa.string())
        return pc.is_in(column, values).to_numpy(zero_copy_only=False)

    def _is_in_raw(self, raw: str | None) -> bool:
        """Whether a rejected entry is of one of the jobs, or has one of the tags."""
        try:
            fields = json.loads(raw or "null")
            tags = json.loads(fields["tags"]) if self.tags and "tags" in fields else []
        except (ValueError, TypeError):
            return False
        is_job = isinstance(fields, dict) and fields.get("jid") in self.jids
        return is_job or (isinstance(tags, list) and any(each in self.tags for each in tags))


def erase(
    lake: Lake,
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
        jids: The jobs.
        namespace: The namespace of the jobs; all unless given.
        progress: Called with a line of text for each table.
        tags: The tags.

    Returns:
        The number of files that had the jobs or tags.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    erased = younger = 0
    for name in TABLES:
        files = retry_conflicts(
            partial(_erase_from, lake, name, _Erased(set(jids), set(tags)), namespace)
        )
        if files:
            progress(f"{name}: {files:,} files")
        snapshot = lake.snapshot(name)
        snapshot.vacuum(0)
        snapshot.delete_orphans()
        younger += len(snapshot.find_orphans())
        erased += files
    if younger:
        progress(
            f"{younger:,} files of killed or running processes may have the jobs, in no table: "
            "`aioqless lake compact` deletes them when they are a day old"
        )
    return erased


def _erase_from(
    lake: Lake,
    name: str,
    erased: _Erased,
    namespace: str | None,
) -> int:
    snapshot = lake.snapshot(name)
    files = snapshot.files(within=namespace)
    erasing = partial(_rewrite, snapshot.storage, snapshot.table, files, erased)
    found = collect(len(files), erasing, _FOUND, None)
    replaced = {row["replaced"] for row in found}
    added = as_actions(row for row in found if row["path"] is not None)
    removed = [each for each in files if each.path in replaced]
    transactions = _count_entries(snapshot, removed, found)
    if name in DERIVED:  # a refresh that has read the jobs already must not commit
        namespaces = {each.namespace for each in lake.snapshot(EVENTS).files(within=namespace)}
        for each in map(position_name, namespaces):
            transactions[each] = snapshot.transaction(each) or 0
    if replaced or transactions:
        snapshot.commit(added, removed, transactions)
    return len(replaced)


def _count_entries(
    snapshot: Snapshot, removed: Sequence[DataFile], found: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    """Return the numbers of erased entries ever, as transactions."""
    namespaces = {each.path: each.namespace for each in removed}
    numbers = Counter[str]()
    for row in found:
        if row["entries"]:
            numbers[namespaces[row["replaced"]]] += row["entries"]
    return {
        erased_name(name): (snapshot.transaction(erased_name(name)) or 0) + number
        for name, number in numbers.items()
    }


def _rewrite(
    storage: Storage, table: Table, files: Sequence[DataFile], erased: _Erased, number: int
) -> Iterator[pa.RecordBatch]:
    """Write a file again without the jobs and tags, if it has any of them."""
    file = files[number]
    named = [each for each in (*erased.columns, _RAW) if each in table.columns.names]
    if not named or not erased.mask(read_table(storage, table, [file], named)).true_count:
        return
    rows = read_table(storage, table, [file])
    mask = erased.mask(rows.select(named))
    concerned = [
        erased.without(row)
        for row in rows.filter(mask).to_pylist()
        if not erased.is_of(row) and _RAW not in row
    ]
    writer = FileWriter(storage, table)
    kept = [rows.filter(pc.invert(mask)), pa.Table.from_pylist(concerned, rows.schema)]
    for batch in pa.concat_tables(kept).combine_chunks().to_batches():
        writer.add(batch)
    entries = 0
    if "ordinal" in rows.column_names:
        entries = len(rows.filter(mask)["ordinal"].drop_null()) - len(concerned)
    yield pa.RecordBatch.from_pylist([{"replaced": file.path, "entries": entries}], _FOUND)
    written = [row | {"replaced": file.path} for row in writer.finish().to_pylist()]
    yield pa.RecordBatch.from_pylist(written, _FOUND)
