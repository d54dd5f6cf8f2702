"""Parquet files of the lake's tables, read and written by Spark's tasks.

Python tasks do the work with pyarrow, so that Spark needs no connector of its own.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from aioqless.contrib.lake.schema import PARTITION_COLUMNS, TABLES, Table, to_spark
from aioqless.contrib.lake.snapshot import DataFile, Snapshot
from aioqless.contrib.lake.storage import LakeError, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_SHARE_BYTES: Final = 16 * 2**20  # compressed, of the files that one task reads
_BUFFER_BYTES: Final = 128 * 2**20  # in memory, of the rows that a task holds before it writes
_ROW_GROUP: Final = 100_000
_BATCH: Final = 10_000  # rows that a task hands to Spark at once
LOOKED_UP: Final = 500_000  # rows that are searched for jids at once
_LONGEST_STATISTIC: Final = 200  # characters

ADDED: Final = pa.schema(
    {
        "path": pa.string(),
        "size": pa.int64(),
        "namespace": pa.string(),
        "date": pa.string(),
        "modified": pa.int64(),
        "statistics": pa.string(),
    }
)


def read(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Sequence[DataFile] | None = None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of a table at the version of a snapshot.

    Args:
        spark: The session.
        snapshot: The table.
        files: The files to read, all of them unless given; see `Snapshot.files`.
        columns: The columns to read, all of them unless given.
    """
    table = snapshot.table
    schema = table.schema if columns is None else _select(table.schema, columns)
    chosen = snapshot.all_files if files is None else files
    if not chosen:
        return spark.createDataFrame([], to_spark(schema))
    reading = partial(_read_share, snapshot.storage, schema, _divide(chosen))
    return run_tasks(spark, len(_divide(chosen)), reading, schema)


def read_table(
    storage: Storage,
    table: Table,
    files: Sequence[DataFile],
    columns: Sequence[str] | None = None,
    condition: pc.Expression | None = None,
) -> pa.Table:
    """Return rows of a table's files without Spark.

    Args:
        storage: The place of the table.
        table: The declaration of the table.
        files: The files to read.
        columns: The columns to return, all of them unless given.
        condition: Which rows to return, of columns that are in the files.
    """
    import pyarrow.dataset as ds  # imports pandas, which takes a second

    schema = table.schema if columns is None else _select(table.schema, columns)
    in_files = _plain(table.columns)
    names = [each.name for each in schema if each.name in in_files.names]
    filesystem = storage.filesystem
    parts = []
    for file in files:
        fragment = ds.ParquetFileFormat().make_fragment(file.path, filesystem)
        rows = fragment.to_table(in_files, columns=names, filter=condition, use_threads=False)
        of_partition = {"namespace": file.namespace, "date": file.date}
        parts.append(
            pa.table(
                [
                    pa.repeat(pa.scalar(of_partition[each.name], each.type), rows.num_rows)
                    if each.name in of_partition
                    else rows[each.name]
                    for each in schema
                ],
                schema=_plain(schema),
            )
        )
    return pa.concat_tables(parts) if parts else _plain(schema).empty_table()


def read_jobs(
    storage: Storage,
    table: Table,
    files: Sequence[DataFile],
    jids: pa.Array,
    columns: Sequence[str] | None = None,
    condition: pc.Expression | None = None,
    *,
    others: bool = False,
) -> pa.Table:
    """Return the rows of some jobs, or of all others, without Spark.

    Args:
        storage: The place of the table.
        table: The declaration of the table.
        files: The files to read.
        jids: The jobs.
        columns: The columns to return, `jid` among them; all of them unless given.
        condition: Which rows of the jobs to return.
        others: Return the rows of all jobs but these.
    """
    # Many rows at once: a lookup builds a hash table of all jids, a condition one for each file.
    found, held = [], []
    for file in files:
        held.append(read_table(storage, table, [file], columns, condition))
        if sum(each.num_rows for each in held) >= LOOKED_UP or file is files[-1]:
            rows = pa.concat_tables(held)
            is_found = pc.is_in(rows["jid"], jids)
            found.append(rows.filter(pc.invert(is_found) if others else is_found))
            held = []
    return pa.concat_tables(found) if found else read_table(storage, table, (), columns)


def write(rows: DataFrame, snapshot: Snapshot) -> list[AddAction]:
    """Write rows as files of a table, and return what `Snapshot.commit` adds.

    Rows have all columns of the table. Each task writes a file for each partition that it has rows
    of, or several large ones: repartition by namespace and date first to get few files.
    Files of failed tasks are never part of the table.
    """
    table = snapshot.table
    if strange := set(table.schema.names) ^ set(rows.columns):
        raise LakeError(f"{table.name}: missing or unknown columns {', '.join(sorted(strange))}")
    writing = partial(_write_rows, snapshot.storage, table.name)
    return as_actions(rows.mapInArrow(writing, to_spark(ADDED)).collect())


def run_tasks(
    spark: SparkSession,
    number: int,
    task: Callable[[int], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """Return the rows that tasks yield; each is called with its number, from 0, in its own task."""
    numbers = spark.range(0, number, 1, number)
    return numbers.mapInArrow(partial(_call_task, task), to_spark(schema))


def collect(
    number: int,
    task: Callable[[int], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    spark: SparkSession | None,
) -> list[dict[str, Any]]:
    """Return the rows that tasks yield, of Spark's tasks, or of this process without a session."""
    if spark is not None:
        return [row.asDict() for row in run_tasks(spark, number, task, schema).collect()]
    return [row for each in range(number) for batch in task(each) for row in batch.to_pylist()]


def as_actions(files: Iterable[Mapping[str, Any] | Row]) -> list[AddAction]:
    """Return rows of files that tasks wrote as what `Snapshot.commit` adds."""
    return [
        AddAction(
            each["path"],
            each["size"],
            {"namespace": each["namespace"], "date": each["date"]},
            each["modified"],
            True,
            each["statistics"],
        )
        for each in files
    ]


def _call_task(
    task: Callable[[int], Iterator[pa.RecordBatch]], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from task(number)


def _divide(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Divide files into shares of about equal size, each for one task."""
    shares: list[list[DataFile]] = [[]]
    size = 0
    for file in files:
        if shares[-1] and size + file.size > _SHARE_BYTES:
            shares.append([])
            size = 0
        shares[-1].append(file)
        size += file.size
    return shares


def _read_share(
    storage: Storage, schema: pa.Schema, shares: list[list[DataFile]], number: int
) -> Iterator[pa.RecordBatch]:
    filesystem = storage.filesystem
    for file in shares[number]:
        with filesystem.open_input_file(file.path) as opened:
            parquet = pq.ParquetFile(opened)
            present = set(parquet.schema_arrow.names)
            names = [name for name in schema.names if name in present]
            for batch in parquet.iter_batches(_BATCH, columns=names):
                yield _complete(batch, schema, file)


def _complete(batch: pa.RecordBatch, schema: pa.Schema, file: DataFile) -> pa.RecordBatch:
    """Add the columns of the partition, and null for columns that are newer than the file."""
    of_partition = {"namespace": file.namespace, "date": file.date}
    columns = []
    for each in schema:
        if each.name in of_partition:
            columns.append(pa.repeat(pa.scalar(of_partition[each.name], each.type), len(batch)))
        elif each.name in batch.schema.names:
            columns.append(batch.column(each.name).cast(each.type))
        else:
            columns.append(pa.nulls(len(batch), each.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _write_rows(
    storage: Storage, name: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    writer = FileWriter(storage, TABLES[name])
    for batch in batches:
        writer.add(batch)
    yield writer.finish()


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
        self._written: list[dict[str, Any]] = []

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

    def finish(self) -> pa.RecordBatch:
        """Write what is held, and return a row for each file of all that were written."""
        for partition in sorted(self._held):
            self._write(partition)
        return pa.RecordBatch.from_pylist(self._written, ADDED)

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
                "path": path,
                "size": self._filesystem.get_file_info(path).size,
                "namespace": namespace,
                "date": day.isoformat(),
                "modified": int(time.time() * 1000),
                "statistics": json.dumps(_statistics(rows, self._table.statistics)),
            }
        )


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without descriptions."""
    return pa.schema([(each.name, each.type) for each in schema])


def _select(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    if strange := set(columns) - set(schema.names):
        raise LakeError(f"unknown columns {', '.join(sorted(strange))}")
    return pa.schema([schema.field(name) for name in columns])


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
        bounds = pc.min_max(rows[name]).as_py()
        nulls[name] = rows[name].null_count
        if bounds["min"] is not None and _is_short(bounds["min"]) and _is_short(bounds["max"]):
            least[name], greatest[name] = _as_text(bounds["min"]), _as_text(bounds["max"])
    return {
        "numRecords": len(rows), "minValues": least, "maxValues": greatest, "nullCount": nulls,
    }  # fmt: skip


def _is_short(value: object) -> bool:
    return not isinstance(value, str) or len(value) <= _LONGEST_STATISTIC


def _as_text(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value.isoformat() if isinstance(value, date) else value
