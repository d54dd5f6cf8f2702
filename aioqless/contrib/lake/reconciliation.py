"""Checks that a lake's tables agree with its events, and both with the statistics of Redis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aioqless.client import Client
from aioqless.client.queue_statistics import DayStats
from aioqless.contrib.lake import tables
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lake_reader import read_rows
from aioqless.contrib.lake.position import Position, erased_name, first_day
from aioqless.contrib.lake.refresh import DERIVED, position_name
from aioqless.contrib.lake.refresh_tasks import COLUMNS, JOBS, RUNS
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE
from aioqless.contrib.lake.snapshot import DataFile
from aioqless.contrib.lake.statistics import Period, read_times
from aioqless.contrib.lake.tables.columns import Groups, array, numbers
from aioqless.contrib.lake.tables.counts import NUMBERS

_OF_TIMES: Final = ("count", "mean", "least", "most")
_OF_FAILURES: Final = ("count", "retried")
_OF_THROUGHPUT: Final = ("put", "popped", "completed", "failed", "retried")
_NOT_ADDITIVE: Final = ("mean", "least", "most")
_FEW: Final = 1e-6  # relative difference of two sums of the same numbers in another order

Totals = dict[tuple[object, ...], dict[str, float]]


@dataclass(frozen=True)
class Difference:
    """Two numbers that are not equal: `found` in `where`, and what it should be."""

    where: str
    expected: float
    found: float

    def __str__(self) -> str:
        return f"{self.where}: {self.found:,.12g} instead of {self.expected:,.12g}"


def check(
    lake: Lake, namespace: str | None = None, progress: Callable[[str], None] = lambda _: None
) -> list[Difference]:
    """Compare the tables with the events from which they were made.

    All events are read. What has been pruned, of the events or of a table, is left out. If jobs
    were erased, whose sums stay, gold may have more than the events.

    Args:
        lake: The lake.
        namespace: The namespace; all unless given.
        progress: Called with a line of text for each namespace.
    """
    events = lake.snapshot(EVENTS)
    names = {each.namespace for each in events.files(within=namespace)}
    found: list[Difference] = []
    for name in sorted(names):
        progress(f"checking {name}")
        found += _NamespaceCheck(lake, name).run()
    return found


async def check_redis(lake: Lake, client: Client, days: Sequence[date]) -> list[Difference]:
    """Compare the tables with the statistics that Redis keeps of the runs that completed.

    They agree if the archive has been on all day, and all of the stream is in the lake.
    """
    queues = [each.name for each in await client.queues()]
    found: list[Difference] = []
    for day in days:
        moment = datetime.combine(day, time(), UTC).timestamp()
        cells = read_times(lake, Period(day, day), "queue", ["queue", "kind"], client.namespace)
        of_day = {row["queue"]: row for row in cells.to_pylist() if row["kind"] == "run"}
        for queue in queues:
            theirs: DayStats = await client.queue(queue).stats(moment)
            ours = of_day.get(queue, {"count": 0, "mean": 0.0})
            where = f"completed runs of {queue} on {day}"
            found += _compare(f"{where}: count", theirs.run.count, ours["count"])
            found += _compare(f"{where}: mean", theirs.run.mean, ours["mean"])
    return found


class _NamespaceCheck:
    def __init__(self, lake: Lake, namespace: str) -> None:
        self._lake = lake
        self._namespace = namespace
        self._events = lake.snapshot(EVENTS)
        self._quarantine = lake.snapshot(QUARANTINE)
        self._erased = sum(
            snapshot.transaction(erased_name(namespace)) or 0
            for snapshot in (self._events, self._quarantine)
        )
        self._first = first_day(self._events, namespace)
        self._files = self._events.files(namespace)

    def run(self) -> list[Difference]:
        """Return all differences."""
        last = max(each.greatest["ordinal"] for each in self._files)
        found = [*self._check_numbers(last), *self._check_positions(last)]
        if not found:  # otherwise all other sums differ as well
            found += self._check_sums()
        return found

    def _check_numbers(self, last: int) -> Iterator[Difference]:
        """Every entry is in the lake once, as an event or rejected."""
        events, archived = self._read_numbers(EVENTS, self._files, last)
        rejected, _ = self._read_numbers(QUARANTINE, self._quarantine.files(self._namespace), last)
        distinct = int(np.count_nonzero(events | rejected))
        rows = archived + int(np.count_nonzero(rejected))
        yield from _compare(f"{EVENTS} of {self._namespace}: rows", distinct, rows)
        lost = Position.of(self._events, self._namespace).lost
        missing = last - distinct - lost
        # The last entry may be among the erased ones.
        if self._first is None and not 0 <= missing <= self._erased:
            where = f"{EVENTS} of {self._namespace}: numbers"
            yield Difference(where, last, distinct + lost + self._erased)

    def _read_numbers(
        self, table: str, files: Sequence[DataFile], last: int
    ) -> tuple[npt.NDArray[np.bool_], int]:
        """Return whether there is each ordinal up to the last one, and the number of rows."""
        seen, rows = np.zeros(last + 1, np.bool_), 0
        valid = pc.field("ordinal").is_valid() & (pc.field("ordinal") <= last)
        for file in files:
            found = read_rows(self._lake, table, [file], ["ordinal"], valid)
            seen[numbers(found["ordinal"])] = True
            rows += found.num_rows
        return seen, rows

    def _check_positions(self, last: int) -> Iterator[Difference]:
        for name in DERIVED:
            position = self._lake.snapshot(name).transaction(position_name(self._namespace)) or 0
            if position < last or not self._erased:
                yield from _compare(f"{name} of {self._namespace}: last event", last, position)

    def _check_sums(self) -> Iterator[Difference]:
        made: dict[str, list[pa.Table]] = {name: [] for name in _SUMS}
        attempts = runs_number = 0
        for file in self._files:
            events = read_rows(self._lake, EVENTS, [file], COLUMNS)
            runs = tables.runs(events)
            runs_number += runs.num_rows
            attempts += runs.num_rows - runs["popped"].null_count
            for name, (make, columns) in _SUMS.items():
                made[name].append(_by_day(name, make(events, runs), columns))
        if self._first is None:
            yield from self._check_silver(runs_number, attempts)
        for name, (_, columns) in _SUMS.items():
            first = max(
                filter(None, [self._first, first_day(self._lake.snapshot(name), self._namespace)]),
                default=date.min,
            )
            theirs = _totals(name, pa.concat_tables(made[name]), columns, first)
            ours = _totals(name, self._gold(name), columns, first)
            for key in sorted(theirs.keys() | ours.keys(), key=str):
                for column in columns:
                    where = f"{name} of {self._namespace}, {', '.join(map(str, key))}: {column}"
                    expected, found = (each.get(key, {}).get(column, 0) for each in (theirs, ours))
                    if self._erased and (column in _NOT_ADDITIVE or found > expected):
                        continue
                    yield from _compare(where, expected, found)

    def _check_silver(self, runs: int, attempts: int) -> Iterator[Difference]:
        files = {name: self._lake.snapshot(name).files(self._namespace) for name in (RUNS, JOBS)}
        if not first_day(self._lake.snapshot(RUNS), self._namespace):
            rows = sum(each.rows for each in files[RUNS])
            yield from _compare(f"{RUNS} of {self._namespace}: rows", runs, rows)
        if not first_day(self._lake.snapshot(JOBS), self._namespace):
            yield from self._check_jobs(files[JOBS], attempts)

    def _check_jobs(self, files: Sequence[DataFile], attempts: int) -> Iterator[Difference]:
        found = 0
        hashes = np.empty(sum(each.rows for each in files), np.uint64)
        read = 0
        for file in files:
            jobs = read_rows(self._lake, JOBS, [file], ["jid", "attempts"])
            found += pc.sum(jobs["attempts"]).as_py() or 0
            hashes[read : read + jobs.num_rows] = _hash(jobs["jid"])
            read += jobs.num_rows
        yield from _compare(f"{JOBS} of {self._namespace}: attempts", attempts, found)
        hashes.sort()
        repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not len(repeated):
            return
        # Different jids may have one hash, so these are read again.
        jids = pa.concat_tables(
            rows.filter(pa.array(np.isin(_hash(rows["jid"]), repeated)))
            for rows in (read_rows(self._lake, JOBS, [file], ["jid"]) for file in files)
        )["jid"]
        more = len(jids) - len(pc.unique(jids))
        yield from _compare(f"{JOBS} of {self._namespace}: rows", read - more, read)

    def _gold(self, name: str) -> pa.Table:
        files = self._lake.snapshot(name).files(self._namespace)
        grouped = name in ("gold/times", "gold/counts")
        return read_rows(
            self._lake, name, files, None, pc.field("grouping") == "" if grouped else None
        )


def _of_all(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(array(table["grouping"]), ""))


def _times(_: pa.Table, runs: pa.Table) -> pa.Table:
    return tables.merge_times(_of_all(tables.times(runs)))


def _counts(events: pa.Table, runs: pa.Table) -> pa.Table:
    return _of_all(tables.counts(events, runs))


def _throughput(_: pa.Table, runs: pa.Table) -> pa.Table:
    return tables.throughput(runs)


_SUMS: Final[dict[str, tuple[Callable[[pa.Table, pa.Table], pa.Table], Sequence[str]]]] = {
    "gold/times": (_times, _OF_TIMES),
    "gold/counts": (_counts, NUMBERS),
    "gold/failures": (tables.failures, _OF_FAILURES),
    "gold/throughput": (_throughput, _OF_THROUGHPUT),
}


def _by_day(name: str, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Add up the rows of each day, so that few are held at once."""
    if name == "gold/times":
        return tables.merged_times(rows, ["date"])
    groups = Groups(rows, ["date"])
    sums = {column: groups.sum(numbers(rows[column])) for column in columns}
    return pa.table({"date": groups.keys["date"], **sums})


def _hash(texts: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    from pandas.util import hash_array  # takes a second to import

    hashes: npt.NDArray[np.uint64] = hash_array(texts.to_numpy(), categorize=False)
    return hashes


def _totals(name: str, rows: pa.Table, columns: Sequence[str], first: date) -> Totals:
    """Return the sums of each day, of times those of each kind."""
    rows = rows.filter(pc.greater_equal(array(rows["date"]), pa.scalar(first)))
    keys = ["date", "kind"] if name == "gold/times" else ["date"]
    if name == "gold/times":
        rows = tables.merged_times(rows, ["date"])
    groups = Groups(rows, keys)
    sums = {column: groups.sum(numbers(rows[column])).tolist() for column in columns}
    return {
        tuple(key.values()): {column: sums[column][number] for column in columns}
        for number, key in enumerate(groups.keys.to_pylist())
    }


def _compare(where: str, expected: float, found: float) -> Iterator[Difference]:
    if not math.isclose(expected, found, rel_tol=_FEW, abs_tol=_FEW):
        yield Difference(where, expected, found)
