"""Erases jobs from every table of a lake, and from the old versions of the tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import TABLES, Table
from aioqless.contrib.lake.snapshot import DataFile, Snapshot, retry_conflicts
from aioqless.contrib.lake.storage import Storage
from aioqless.contrib.lake.table_files import (
    ADDED,
    FileWriter,
    as_actions,
    collect,
    read_table,
)
from aioqless.contrib.lake.tables.columns import array, elements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORPHAN_HOURS: Final = 24  # writers at work may need files that are younger
_ERASED_HERE: Final = 5_000_000  # rows of a table that are searched without Spark
_NAMES: Final = ("jid", "depends", "spawned_from", "stages", "steps", "samples")  # what names jobs
_RAW: Final = "raw"  # of a rejected entry, which is JSON
_FOUND: Final = pa.schema(
    [pa.field("replaced", pa.string()), pa.field("entries", pa.int64()), *ADDED]
)


def erase(
    lake: Lake,
    jids: Collection[str],
    open_session: Callable[[], SparkSession],
    namespace: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Erase jobs: their events with data and messages, their rows, and references to them.

    Sums in gold stay what they are: they name no job. The number of erased entries is recorded.
    Afterwards no file of the lake has the jobs; earlier versions of the changed tables can't be
    read any more.

    Args:
        lake: The lake.
        jids: The jobs.
        open_session: Returns a Spark session; called only for tables with many rows.
        namespace: The namespace of the jobs; all unless given.
        progress: Called with a line of text for each table.

    Returns:
        The number of files that had the jobs.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    erased = 0
    for name in TABLES:
        files = retry_conflicts(
            partial(_erase_from, lake, name, set(jids), open_session, namespace)
        )
        if files:
            progress(f"{name}: {files:,} files")
        snapshot = lake.snapshot(name)
        snapshot.vacuum(0, orphans=False)
        snapshot.vacuum(ORPHAN_HOURS)
        erased += files
    return erased


def _erase_from(
    lake: Lake,
    name: str,
    jids: set[str],
    open_session: Callable[[], SparkSession],
    namespace: str | None,
) -> int:
    snapshot = lake.snapshot(name)
    files = snapshot.files(within=namespace)
    erasing = partial(_rewrite, snapshot.storage, snapshot.table, files, jids)
    is_small = sum(each.rows for each in files) <= _ERASED_HERE
    found = collect(len(files), erasing, _FOUND, None if is_small else open_session())
    replaced = {row["replaced"] for row in found}
    if replaced:
        added = as_actions(row for row in found if row["path"] is not None)
        removed = [each for each in files if each.path in replaced]
        snapshot.commit(added, removed, _count_entries(snapshot, removed, found))
    return len(replaced)


def erased_name(namespace: str) -> str:
    """Return the transaction name under which a table records how many entries were erased."""
    return f"erase:{namespace}"


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
    storage: Storage, table: Table, files: Sequence[DataFile], jids: set[str], number: int
) -> Iterator[pa.RecordBatch]:
    """Write a file again without the jobs, if it has any of them."""
    file = files[number]
    named = [each for each in (*_NAMES, _RAW) if each in table.columns.names]
    if not named or not _mask(read_table(storage, table, [file], named), jids).true_count:
        return
    rows = read_table(storage, table, [file])
    mask = _mask(rows.select(named), jids)
    concerned = [
        _erased(row, jids)
        for row in rows.filter(mask).to_pylist()
        if row.get("jid") not in jids and _RAW not in row
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


def _mask(rows: pa.Table, jids: set[str]) -> pa.Array:
    """Return which rows name one of the jobs, in any of the columns."""
    values = pa.array(sorted(jids), pa.string())
    found = np.zeros(rows.num_rows, bool)
    for name in rows.column_names:
        if name == _RAW:
            found |= [_jid_of(raw) in jids for raw in rows[name].to_pylist()]
        else:
            found |= _names_any(array(rows[name]), values)
    return pa.array(found)


def _names_any(column: pa.Array, jids: pa.Array) -> Any:
    if pa.types.is_list(column.type):
        parents, each = elements(column)
        found = np.zeros(len(column), bool)
        found[parents[_names_any(each, jids)]] = True
        return found
    if pa.types.is_struct(column.type):
        fields = [name for name in _NAMES if column.type.get_field_index(name) >= 0]
        masks = [_names_any(pc.struct_field(column, name), jids) for name in fields]
        return np.logical_or.reduce(masks)
    return pc.is_in(column, jids).to_numpy(zero_copy_only=False)


def _erased(value: Any, jids: set[str]) -> Any:
    """Return a value without references to the jobs."""
    if isinstance(value, Mapping):
        return {
            key: None
            if key in _NAMES and isinstance(each, str) and each in jids
            else _erased(each, jids)
            for key, each in value.items()
        }
    if isinstance(value, list):
        kept = (each for each in value if not (isinstance(each, str) and each in jids))
        return [
            _erased(each, jids)
            for each in kept
            if not (isinstance(each, Mapping) and each.get("jid") in jids)
        ]
    return value


def _jid_of(raw: str | None) -> object:
    """Return the jid of a rejected entry."""
    try:
        fields = json.loads(raw or "null")
    except ValueError:
        return None
    return fields.get("jid") if isinstance(fields, dict) else None
