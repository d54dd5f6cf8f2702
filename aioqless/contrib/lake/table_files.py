"""Parquet files of the lake's tables, read and written by this process or by Spark's tasks.

They do so with pyarrow, so that Spark needs no connector of its own.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from aioqless.contrib.lake.schema import PARTITION_COLUMNS, TABLES, Table
from aioqless.contrib.lake.snapshot import DataFile
from aioqless.contrib.lake.storage import Storage

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyspark.sql import SparkSession

_READ_AT_ONCE: Final = 16 * 2**20  # compressed, of files that are read without a dataset
_BUFFER_BYTES: Final = 128 * 2**20  # in memory, of the rows that a task holds before it writes
_ROW_GROUP: Final = 100_000
_LONGEST_STATISTIC: Final = 200  # characters
File: TypeAlias = dict[str, Any]  # a file that was written, as JSON


def open_dataset(storage: Storage, table: Table, files: Sequence[DataFile]) -> Dataset:
    """Return the rows of a table's files as a dataset of Arrow; columns that are newer are null.

    Args:
        storage: The place of the table.
        table: The declaration of the table.
        files: The files to read.
    """
    import pyarrow.dataset as ds  # imports pandas, which takes a second

    schema = _plain(table.schema)
    if not files:
        return ds.dataset(schema.empty_table())
    form, filesystem = ds.ParquetFileFormat(), storage.filesystem
    fragments = [
        form.make_fragment(
            file.path,
            filesystem,
            (ds.field("namespace") == file.namespace) & (ds.field("date") == file.date),
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, form, filesystem)


def open_rows(storage: Storage, table: Table, files: Sequence[DataFile]) -> Dataset | pa.Table:
    """Return the rows of a table's files: few are read now, many when they are asked for."""
    if sum(each.size for each in files) > _READ_AT_ONCE:
        return open_dataset(storage, table, files)
    schema, filesystem = _plain(table.schema), storage.filesystem
    parts = [schema.empty_table()]
    for file in files:
        with filesystem.open_input_file(file.path) as opened:
            parquet = pq.ParquetFile(opened)
            known = [each for each in parquet.schema_arrow.names if each in schema.names]
            rows = parquet.read(known, use_threads=False)
        of_partition = {"namespace": file.namespace, "date": file.date}
        columns = [
            rows[each.name].cast(each.type)
            if each.name in known
            else pa.repeat(pa.scalar(of_partition.get(each.name), each.type), rows.num_rows)
            for each in schema
        ]
        parts.append(pa.table(columns, schema=schema))
    return pa.concat_tables(parts)


def read_table(
    storage: Storage,
    table: Table,
    files: Sequence[DataFile],
    columns: Sequence[str] | None = None,
    condition: pc.Expression | None = None,
) -> pa.Table:
    """Return rows of a table's files, all columns unless some are given; see `open_dataset`."""
    found = open_dataset(storage, table, files)
    names = None if columns is None else list(columns)
    return found.to_table(columns=names, filter=condition, use_threads=False)


def collect(
    number: int, task: Callable[[int], list[File]], spark: SparkSession | None
) -> list[File]:
    """Return what tasks return, which are called with their numbers, from 0.

    Args:
        number: The number of tasks.
        task: What a task does.
        spark: The session in whose tasks they run; without one, this process does it all.
    """
    if spark is None:
        return [each for at in range(number) for each in task(at)]
    numbers = spark.range(0, number, 1, number)
    rows = numbers.mapInArrow(partial(_call_task, task), "file string").collect()
    return [json.loads(row.file) for row in rows]


def _call_task(
    task: Callable[[int], list[File]], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            files = [{"file": json.dumps(each)} for each in task(number)]
            yield pa.RecordBatch.from_pylist(files, pa.schema({"file": pa.string()}))


def as_actions(files: Iterable[File]) -> list[AddAction]:
    """Return files that were written as what `Snapshot.commit` adds."""
    return [
        AddAction(
            each["path"],
            each["size"],
            {"namespace": each["namespace"], "date": each["date"]},
            each["modified"],
            True,
            json.dumps(each["statistics"]),
        )
        for each in files
    ]


@dataclass
class _Partition:
    """Rows of a namespace and day that a task still holds."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0


class FileWriter:
    """Writes rows to new files of a table: one for each partition, or several large ones."""

    def __init__(self, storage: Storage, table: Table) -> None:
        self._storage = storage
        self._filesystem = storage.filesystem
        self._table = table
        self._columns = _plain(table.columns)
        self._held: dict[tuple[str, date], _Partition] = {}
        self._written: list[File] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows with all declared columns of the table, in any order of partitions.

        Columns that the user added to the table may be missing.
        """
        declared = TABLES[self._table.name].columns.names
        for partition, part in _split(rows):
            arrays = [
                part.column(each.name).cast(each.type)
                if each.name in declared or each.name in part.schema.names
                else pa.nulls(len(part), each.type)
                for each in self._columns
            ]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._columns)
            held = self._held.setdefault(partition, _Partition())
            held.batches.append(batch)
            held.size += batch.nbytes
        while sum(each.size for each in self._held.values()) > _BUFFER_BYTES:
            self._write(max(self._held, key=lambda each: self._held[each].size))

    def finish(self) -> list[File]:
        """Write what is held, and return all files that were written."""
        for partition in sorted(self._held):
            self._write(partition)
        return self._written

    def _write(self, partition: tuple[str, date]) -> None:
        namespace, day = partition
        rows = pa.Table.from_batches(self._held.pop(partition).batches)
        if self._table.order:
            rows = rows.sort_by([(name, "ascending") for name in self._table.order])
        plain = re.sub(r"[^\w-]", "_", namespace, flags=re.ASCII)
        path = f"namespace={plain}/date={day.isoformat()}/{uuid.uuid4()}.parquet"
        if self._storage.is_local:
            self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with self._filesystem.open_output_stream(path) as file:
            pq.write_table(rows, file, compression="zstd", row_group_size=_ROW_GROUP)
        self._written.append(
            {
                "table": self._table.name,
                "path": path,
                "size": self._filesystem.get_file_info(path).size,
                "namespace": namespace,
                "date": day.isoformat(),
                "modified": int(time.time() * 1000),
                "statistics": _statistics(rows, self._table.statistics),
            }
        )


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without descriptions."""
    return pa.schema([(each.name, each.type) for each in schema])


def _split(rows: pa.RecordBatch) -> Iterator[tuple[tuple[str, date], pa.RecordBatch]]:
    """Yield the rows of each namespace and day."""
    table = pa.Table.from_batches([rows])
    pairs = table.group_by(list(PARTITION_COLUMNS)).aggregate([]).to_pylist()
    for pair in pairs:
        partition = (pair["namespace"], pair["date"])
        if len(pairs) == 1:
            yield partition, rows
        else:
            same = pc.and_(
                pc.equal(rows["namespace"], partition[0]), pc.equal(rows["date"], partition[1])
            )
            yield partition, rows.filter(same)


def _statistics(rows: pa.Table, columns: Sequence[str]) -> dict[str, Any]:
    """Return the statistics of a file as Delta's log has them."""
    least, greatest, nulls = {}, {}, {}
    for name in columns:
        # Without timestamps as objects of Python, for which pyarrow imports pandas.
        is_time = pa.types.is_timestamp(rows[name].type)
        bounds = pc.min_max(rows[name].cast(pa.int64()) if is_time else rows[name]).as_py()
        nulls[name] = rows[name].null_count
        if bounds["min"] is not None and _is_short(bounds["min"]) and _is_short(bounds["max"]):
            least[name], greatest[name] = (
                _format_time(bounds[bound]) if is_time else bounds[bound]
                for bound in ("min", "max")
            )
    return {
        "numRecords": len(rows), "minValues": least, "maxValues": greatest, "nullCount": nulls,
    }  # fmt: skip


def _is_short(value: object) -> bool:
    return not isinstance(value, str) or len(value) <= _LONGEST_STATISTIC


def _format_time(micros: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
