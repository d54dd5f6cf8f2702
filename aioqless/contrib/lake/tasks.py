"""Tasks that make rows of tables: in this process one after another, or by Spark's executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSession: TypeAlias = Callable[[], "SparkSession"]
Rows: TypeAlias = Iterator[tuple[str, pa.RecordBatch]]  # with the name of their table
Item = TypeVar("Item")

_MAX_TASKS: Final = 16
_COLUMNS: Final = pa.schema({"number": pa.int64(), "name": pa.string(), "rows": pa.binary()})
_PACKED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


def run_tasks(
    items: Sequence[Item], task: Callable[[Item], Rows], open_session: OpenSession | None
) -> Rows:
    """Yield the rows that a function makes of each item, by table and in the order of the items.

    Args:
        items: What the rows are made of.
        task: Returns the rows of an item. If there are several items, they are of one table, or
            Spark runs it.
        open_session: Returns the session in whose tasks it runs, if Spark is to run it.
    """
    if open_session is None:
        for item in items:
            yield from task(item)
        return
    given = [(number, pickle.dumps(item)) for number, item in enumerate(items)]
    frame = open_session().createDataFrame(given, "number bigint, item binary")
    made = frame.repartition(min(len(given), _MAX_TASKS)).mapInArrow(
        partial(_run, task), "number bigint, name string, rows binary"
    )
    for row in sorted(made.collect(), key=lambda row: (row.name, row.number)):
        with pa.ipc.open_stream(pa.py_buffer(bytes(row.rows))) as batches:
            yield from ((row.name, batch) for batch in batches)


def _run(
    task: Callable[[Item], Rows], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for given in batch.to_pylist():
            for name, rows in task(pickle.loads(given["item"])):
                packed = pa.BufferOutputStream()
                with pa.ipc.new_stream(packed, rows.schema, options=_PACKED) as stream:
                    stream.write_batch(rows)
                row = {"number": given["number"], "name": name}
                row |= {"rows": packed.getvalue().to_pybytes()}
                yield pa.RecordBatch.from_pylist([row], _COLUMNS)
