"""Tasks write the files of tables; the driver gets their names, and commits them.

A file that no commit names is in no table: what failed and repeated tasks leave is deleted with
other orphans by `lake prune`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aioqless.contrib.lake.open_table import AddedFile, OpenTable, conform
from aioqless.contrib.lake.schema import PARTITION_COLUMNS
from aioqless.contrib.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS: Final = ("_table", *PARTITION_COLUMNS)  # by which rows are sorted that are written
FILE_BYTES: Final = 64 * 2**20  # at which another file begins, about
_GROUP_ROWS: Final = 131_072  # of a row group, at most
_GROUP_BYTES: Final = 32 * 2**20  # in memory
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ACTIONS: Final = (
    "table string, path string, size bigint, rows bigint, namespace string, date date, "
    "statistics string"
)
_ACTION: Final = pa.schema(
    {
        "table": pa.string(),
        "path": pa.string(),
        "size": pa.int64(),
        "rows": pa.int64(),
        "namespace": pa.string(),
        "date": pa.date32(),
        "statistics": pa.string(),
    }
)

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Target:
    """A table as the tasks need to know it that write its files."""

    storage: Storage
    schema: pa.Schema
    statistics: tuple[str, ...]

    @classmethod
    def of(cls, table: OpenTable) -> Target:
        """Return a table as a target."""
        stored = [each for each in table.schema if each.name not in PARTITION_COLUMNS]
        return cls(table.storage, pa.schema(stored), table.table.statistics)


def write_files(
    frame: DataFrame,
    tables: Mapping[str, OpenTable],
    make: Callable[[Batches], Batches] = iter,
) -> dict[str, list[AddedFile]]:
    """Have tasks write rows to files, and return these by table.

    Args:
        frame: The rows. `_table` names their table; partitions are sorted by `KEYS`.
        tables: The tables by name.
        make: Makes the rows, in the task, of those of the frame.
    """
    targets = {name: Target.of(table) for name, table in tables.items()}
    written = frame.mapInArrow(partial(_write, targets, make), _ACTIONS).toArrow().to_pylist()
    found: dict[str, list[AddedFile]] = {name: [] for name in tables}
    for each in written:
        found[each.pop("table")].append(AddedFile(**each))
    return found


def _write(
    targets: Mapping[str, Target], make: Callable[[Batches], Batches], batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task, and yield a row for each file."""
    made, file = list[dict[str, Any]](), None
    for batch in make(batches):
        for key, rows in _divide(batch):
            if file is None or key != file.key or file.size > FILE_BYTES:
                if file is not None:
                    made.append(file.close())
                file = _File(targets[key[0]], key)
            file.add(rows)
    if file is not None:
        made.append(file.close())
    if made:
        yield pa.RecordBatch.from_pylist(made, _ACTION)


def _divide(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, str, date], pa.RecordBatch]]:
    """Yield the rows of each table, namespace and day."""
    ends = {0, len(batch)}
    for name in KEYS:
        encoded = pc.run_end_encode(batch[name])
        ends.update(encoded.run_ends.to_pylist())
    for start, end in pairwise(sorted(ends)):
        rows = batch.slice(start, end - start)
        table, namespace, day = (rows[name][0].as_py() for name in KEYS)
        yield (table, namespace, day), rows


class _File:
    """A Parquet file of a partition."""

    def __init__(self, target: Target, key: tuple[str, str, date]) -> None:
        self.key = key
        self._target = target
        _, namespace, day = key
        folder = f"namespace={quote(namespace, safe='')}/date={day}"
        self._path = f"{folder}/part-{uuid.uuid4()}.zstd.parquet"
        if target.storage.is_local:
            Path(target.storage.url, folder).mkdir(parents=True, exist_ok=True)
        self._output = target.storage.filesystem.open_output_stream(self._path)
        self._writer = pq.ParquetWriter(
            self._output, target.schema, compression="zstd", compression_level=1
        )
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._least: dict[str, Any] = {}
        self._greatest: dict[str, Any] = {}
        self._nulls = dict.fromkeys(target.statistics, 0)

    @property
    def size(self) -> int:
        """Number of bytes that are written."""
        return int(self._output.tell())

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows, in groups of many."""
        self._waiting.append(conform(rows, self._target.schema))
        self._rows += len(rows)
        if (
            sum(map(len, self._waiting)) >= _GROUP_ROWS
            or sum(each.nbytes for each in self._waiting) >= _GROUP_BYTES
        ):
            self._write_group()

    def _write_group(self) -> None:
        group = pa.Table.from_batches(self._waiting, self._target.schema)
        self._waiting.clear()
        self._writer.write_table(group, _GROUP_ROWS)
        for name in self._target.statistics:
            column = group[name]
            self._nulls[name] += column.null_count
            found = pc.min_max(
                column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
            ).as_py()
            if found["min"] is not None:
                self._least[name] = min(found["min"], self._least.get(name, found["min"]))
                self._greatest[name] = max(found["max"], self._greatest.get(name, found["max"]))

    def close(self) -> dict[str, Any]:
        """Finish the file, and return what a commit says of it."""
        if self._waiting:
            self._write_group()
        self._writer.close()
        size = self.size
        self._output.close()
        statistics = {
            "numRecords": self._rows,
            "minValues": self._format(self._least),
            "maxValues": self._format(self._greatest),
            "nullCount": self._nulls,
        }
        values = (self.key[0], self._path, size, self._rows, *self.key[1:], json.dumps(statistics))
        return dict(zip(_ACTION.names, values, strict=True))

    def _format(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values as Delta's log has them, times as text."""
        return {
            name: (_EPOCH + timedelta(microseconds=value)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            if pa.types.is_timestamp(self._target.schema.field(name).type)
            else value
            for name, value in values.items()
        }
