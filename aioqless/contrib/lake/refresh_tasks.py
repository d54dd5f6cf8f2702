"""The work of a refresh on rows: new events become rows of tables, which merge with old rows.

The same functions run in this process, all at once, and in Spark's tasks: there, tasks read shares
of the events, and others merge the rows of one unit each, which is a day, or a file of jobs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake import tables
from aioqless.contrib.lake.schema import EVENTS, TABLES, to_spark
from aioqless.contrib.lake.snapshot import DataFile
from aioqless.contrib.lake.storage import Storage
from aioqless.contrib.lake.table_files import (
    ADDED,
    LOOKED_UP,
    FileWriter,
    read_table,
    run_tasks,
)
from aioqless.contrib.lake.tables.columns import array

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS: Final = "silver/runs"
JOBS: Final = "silver/jobs"
PATHS: Final = "gold/paths"
SHARE: Final = 50_000  # events that one task reads
_NOT_READ: Final = frozenset({"data", "data_size", "history", "was"})
COLUMNS: Final = [name for name in TABLES[EVENTS].schema.names if name not in _NOT_READ]

_OF_RUNS: Final[dict[str, Callable[[pa.Table], pa.Table]]] = {
    "gold/times": tables.times,
    "gold/throughput": tables.throughput,
}
_OF_BOTH: Final[dict[str, Callable[[pa.Table, pa.Table], pa.Table]]] = {
    "gold/counts": tables.counts,
    "gold/failures": tables.failures,
}
_MERGES: Final[dict[str, Callable[[pa.Table], pa.Table]]] = {
    JOBS: tables.merge_jobs,
    "gold/times": tables.merge_times,
    "gold/counts": tables.merge_counts,
    "gold/failures": tables.merge_failures,
    "gold/throughput": tables.merge_throughput,
}
MERGED: Final = tuple(_MERGES)

_UNITS: Final = pa.schema({"table": pa.string(), "unit": pa.string(), "rows": pa.binary()})
_RESULTS: Final = pa.schema([pa.field("table", pa.string()), *ADDED])
_JIDS: Final = pa.schema({"jid": pa.string()})
_PLACES: Final = pa.schema({"jid": pa.string(), "path": pa.string()})

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """What one round of a refresh does, for one namespace.

    Attributes:
        lake: Where the lake is.
        events: The files that may have the new events.
        after: For each table that is behind, the ordinal of the last event in it.
        until: The ordinal of the last event to take.
        first_day: For each table, the day before which its rows have been pruned.
        old: The files of each merged gold table by day.
        places: The file of each job that is among the new events and in the table already.
    """

    lake: Storage
    events: Sequence[DataFile]
    after: Mapping[str, int]
    until: int
    first_day: Mapping[str, date]
    old: Mapping[str, Mapping[date, Sequence[DataFile]]] = field(default_factory=dict)
    places: Mapping[str, DataFile] = field(default_factory=dict)

    @property
    def start(self) -> int:
        """The ordinal after which there are new events for any table."""
        return min(self.after.values())

    def read_events(self, after: int, until: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the events behind one ordinal, up to another."""
        files = [each for each in self.events if each.may_contain({"ordinal": (after + 1, until)})]
        within = (pc.field("ordinal") > after) & (pc.field("ordinal") <= until)
        return read_table(
            self.lake.within(EVENTS), TABLES[EVENTS], files, columns or COLUMNS, within
        )

    def shares(self, size: int = SHARE) -> list[tuple[int, int]]:
        """Divide the new events into ranges of ordinals."""
        return [
            (start, min(start + size, self.until)) for start in range(self.start, self.until, size)
        ]


def make_rows(work: Work, after: int, until: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows that events make of each table that is behind, to be merged with others."""
    events = work.read_events(after, until)
    runs = tables.runs(events)
    of_range: dict[int, tuple[pa.Table, pa.Table]] = {}
    for table, last in work.after.items():
        if last >= until or table == PATHS:
            continue
        start = max(last, after)
        if start not in of_range:
            newer = pc.greater(array(events["ordinal"]), start)
            some = events if start == after else events.filter(newer)
            of_range[start] = (some, runs if start == after else tables.runs(some))
        made = _make(table, *of_range[start])
        if first := work.first_day.get(table):
            made = made.filter(pc.greater_equal(array(made["date"]), pa.scalar(first)))
        yield table, made


def merge_into(work: Work, table: str, rows: pa.Table, files: Sequence[DataFile]) -> list[Result]:
    """Merge rows with those of some files, and write new files.

    Return a row of `ADDED` for each.
    """
    declared = TABLES[table]
    storage = work.lake.within(table)
    if merge := _MERGES.get(table):
        names = declared.schema.names
        old = read_table(
            storage, declared, files, [name for name in names if name in rows.schema.names]
        )
        rows = merge(pa.concat_tables([old, rows.select(old.schema.names).cast(old.schema)]))
    writer = FileWriter(storage, declared)
    for batch in rows.combine_chunks().to_batches():
        writer.add(batch)
    return [row | {"table": table} for row in writer.finish().to_pylist()]


def run_here(work: Work) -> list[Result]:
    """Do all the work in this process."""
    return [
        result
        for table, rows in make_rows(work, work.start, work.until)
        for result in merge_into(work, table, rows, _old_files(work, table, rows))
    ]


def run_in_spark(spark: SparkSession, work: Work) -> list[Result]:
    """Do the work in tasks of Spark."""
    shares = work.shares()
    made = run_tasks(spark, len(shares), partial(_make_share, work, shares), _UNITS)
    by_unit = made.repartition(max(2, len(shares)), "table", "unit")
    results = by_unit.mapInArrow(partial(_merge_units, work), to_spark(_RESULTS)).collect()
    return [row.asDict() for row in results]


def find_new_jids(work: Work, after: int, spark: SparkSession | None) -> pa.Array:
    """Return the distinct jids of the events behind an ordinal."""
    if spark is None:
        return _distinct_jids(work, after, work.until)
    shares = [share for share in work.shares() if share[1] > after]
    found = run_tasks(spark, len(shares), partial(_find_jids, work, after, shares), _JIDS)
    return pc.unique(array(found.toArrow()["jid"]))


def find_places(
    storage: Storage,
    table: str,
    files: Sequence[DataFile],
    jids: pa.Array,
    spark: SparkSession | None = None,
) -> dict[str, DataFile]:
    """Return in which of the files each jid is, of those that are in any."""
    by_path = {each.path: each for each in files}
    if not files or not len(jids):
        return {}
    finding = partial(_find_places, storage, table, jids)
    if spark is None:
        found = pa.Table.from_batches(finding(files), _PLACES)
    else:
        each = max(1, len(files) // 200)
        shares = [files[start : start + each] for start in range(0, len(files), each)]
        found = run_tasks(
            spark, len(shares), partial(_call_share, finding, shares), _PLACES
        ).toArrow()
    return {
        jid: by_path[path]
        for jid, path in zip(found["jid"].to_pylist(), found["path"].to_pylist(), strict=True)
    }


def _make(table: str, events: pa.Table, runs: pa.Table) -> pa.Table:
    if table == RUNS:
        return runs
    if table == JOBS:
        return tables.jobs(events)
    if table in _OF_RUNS:
        return _OF_RUNS[table](runs)
    return _OF_BOTH[table](events, runs)


def _old_files(work: Work, table: str, rows: pa.Table) -> list[DataFile]:
    """Return the files whose rows the new rows are merged with."""
    if table == JOBS:
        return list({each.path: each for each in work.places.values()}.values())
    of_day = work.old.get(table, {})
    return [
        file for day in pc.unique(array(rows["date"])).to_pylist() for file in of_day.get(day, ())
    ]


def _make_share(
    work: Work, shares: Sequence[tuple[int, int]], number: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a share of the events, each unit's as one value."""
    buckets = len(shares)
    for table, rows in make_rows(work, *shares[number]):
        if table == RUNS:
            for written in merge_into(work, table, rows, ()):
                yield _unit(table, "", json.dumps(written).encode())
            continue
        for unit, part in _units(work, table, rows, buckets):
            yield _unit(table, unit, _packed(part))


def _units(work: Work, table: str, rows: pa.Table, buckets: int) -> Iterator[tuple[str, pa.Table]]:
    if table == JOBS:
        names = pa.array([_job_unit(work, jid, buckets) for jid in rows["jid"].to_pylist()])
    else:
        names = array(rows["date"]).cast(pa.string())
    for name in pc.unique(names).to_pylist():
        yield name, rows.filter(pc.equal(names, name))


def _job_unit(work: Work, jid: str, buckets: int) -> str:
    """Return the file that has the job, or a bucket of jobs that are new."""
    place = work.places.get(jid)
    return place.path if place else f"new {zlib.crc32(jid.encode()) % buckets}"


def _merge_units(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the files that were written of each unit's rows."""
    held: dict[tuple[str, str], list[bytes]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            held.setdefault((row["table"], row["unit"]), []).append(row["rows"])
    files = {each.path: each for each in work.places.values()}
    while held:
        (table, unit), packed = held.popitem()
        if table == RUNS:
            results = [json.loads(each) for each in packed]
        else:
            rows = pa.concat_tables([pa.ipc.open_stream(each).read_all() for each in packed])
            old = (
                _old_files(work, table, rows)
                if table != JOBS
                else [files[unit]]
                if unit in files
                else []
            )
            results = merge_into(work, table, rows, old)
        yield pa.RecordBatch.from_pylist(results, _RESULTS)


def _unit(table: str, unit: str, rows: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"table": table, "unit": unit, "rows": rows}], _UNITS)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks())
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _distinct_jids(work: Work, after: int, until: int) -> pa.Array:
    return pc.unique(array(work.read_events(after, until, ["jid"])["jid"]))


def _find_jids(
    work: Work, after: int, shares: Sequence[tuple[int, int]], number: int
) -> Iterator[pa.RecordBatch]:
    start, until = shares[number]
    yield pa.RecordBatch.from_arrays([_distinct_jids(work, max(start, after), until)], schema=_JIDS)


def _find_places(
    storage: Storage, table: str, jids: pa.Array, files: Sequence[DataFile]
) -> Iterator[pa.RecordBatch]:
    # Many rows at once, since each lookup builds a hash table of all jids.
    held: dict[str, pa.Array] = {}
    for file in files:
        held[file.path] = array(read_table(storage, TABLES[table], [file], ["jid"])["jid"])
        if sum(map(len, held.values())) >= LOOKED_UP or file is files[-1]:
            paths = np.repeat(np.array(list(held)), [len(each) for each in held.values()])
            rows = pa.concat_arrays(list(held.values()))
            is_found = pc.is_in(rows, jids)
            places = pa.array(paths[is_found.to_numpy(zero_copy_only=False)], pa.string())
            yield pa.RecordBatch.from_arrays([rows.filter(is_found), places], schema=_PLACES)
            held = {}


def _call_share(
    function: Callable[[Sequence[DataFile]], Iterator[pa.RecordBatch]],
    shares: Sequence[Sequence[DataFile]],
    number: int,
) -> Iterator[pa.RecordBatch]:
    return function(shares[number])
