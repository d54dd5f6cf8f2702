"""Computes the tables of silver and gold from the events, again for each day that has new ones.

A day of a namespace is the unit: what its events say is in the same partition of every table. Each
table records the ordinal of the last event that it contains, in the transaction that replaces its
rows. A refresh that is killed is therefore continued by the next one; two at once do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from aioqless.contrib.lake.database import open_database, read_sql
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import first_day
from aioqless.contrib.lake.schema import EVENTS, TABLES
from aioqless.contrib.lake.snapshot import ConcurrentCommit, DataFile, Snapshot
from aioqless.contrib.lake.storage import Storage
from aioqless.contrib.lake.table_files import (
    File,
    FileWriter,
    as_actions,
    collect,
    open_rows,
    read_table,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

LOCAL_EVENTS: Final = 200_000  # as many new events are processed without Spark
CHUNK: Final = 200_000  # events of days that are computed at once; a day is never divided
MINUTE: Final = 60_000_000
_CONFLICTS: Final = 10
_BATCH: Final = 50_000  # rows

# Each table with its text, made of the views `events`, `runs` and `ended`.
TEXTS: Final = {
    "silver/runs": "FROM runs",
    "gold/klasses": read_sql("groups", keys="queue, klass", rows="FROM ended"),
    "gold/tags": read_sql(
        "groups",
        keys="queue, klass, tag",
        rows="SELECT *, unnest(list_distinct(tags)) AS tag FROM ended",
    ),
    "gold/workers": read_sql(
        "groups", keys="queue, worker", rows="FROM ended WHERE worker IS NOT NULL"
    ),
    "gold/failures": read_sql("failures"),
    "gold/throughput": read_sql("throughput", micros=MINUTE),
}
DERIVED: Final = tuple(TEXTS)

OpenSession = Callable[[], "SparkSession"]


@dataclass
class Refreshed:
    """What a refresh did: the number of new events, and the days that it computed."""

    events: int = 0
    days: set[tuple[str, date]] = field(default_factory=set)


def refresh(
    lake: Lake,
    open_session: OpenSession,
    progress: Callable[[str], None] = lambda _: None,
    *,
    rebuilt: Container[date] = (),
    local_events: int = LOCAL_EVENTS,
) -> Refreshed:
    """Compute all tables of each day that has events since the last refresh.

    Args:
        lake: The lake.
        open_session: Returns a Spark session; called only when there are many new events.
        progress: Called with a line of text for each namespace.
        rebuilt: Days that are computed anyway, of all events that the lake still has.
        local_events: The number of events up to which this process does all the work.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    opened = lake.upgrade()
    outdated = {name for name in DERIVED if opened[name].is_outdated}
    done = Refreshed()
    for namespace in sorted({each.namespace for each in opened[EVENTS].all_files}):
        for conflicts in range(1, _CONFLICTS + 1):
            work = _Refresh(lake, opened, namespace, rebuilt, is_first=bool(outdated))
            try:
                work.run(open_session, progress, local_events)
                break
            except (ConcurrentCommit, FileNotFoundError) as error:  # also files erased meanwhile
                if conflicts == _CONFLICTS:
                    raise ConcurrentCommit(str(error)) from None
                opened = lake.upgrade()
        done.events += work.new_events
        done.days |= {(namespace, each) for each in work.days}
    for table in outdated:
        lake.mark_current(table)
    return done


def position_name(namespace: str) -> str:
    """Return the transaction name under which a table records its last ordinal."""
    return f"refresh:{namespace}"


class _Refresh:
    """The refresh of one namespace, to the last event of a version of bronze."""

    def __init__(
        self,
        lake: Lake,
        opened: dict[str, Snapshot],
        namespace: str,
        rebuilt: Container[date],
        *,
        is_first: bool,
    ) -> None:
        self._lake = lake
        self._opened = opened  # the latest versions, also for the next namespace
        self._namespace = namespace
        self._files = opened[EVENTS].files(namespace)
        self._last = max((each.greatest["ordinal"] for each in self._files), default=0)
        positions = [opened[each].transaction(position_name(namespace)) for each in DERIVED]
        self._after = 0 if is_first else min(each or 0 for each in positions)
        first = first_day(opened[EVENTS], namespace) or date.min
        self.days = {
            each.date
            for each in self._files
            if each.date >= first
            and (each.greatest["ordinal"] > self._after or each.date in rebuilt)
        }
        self.new_events = 0

    def run(
        self, open_session: OpenSession, progress: Callable[[str], None], local_events: int
    ) -> None:
        """Compute the days, and commit each table."""
        if not self.days and self._after >= self._last:
            return
        newer = [each for each in self._files if each.greatest["ordinal"] > self._after]
        self.new_events = self._count(newer)
        chosen = [each for each in self._files if each.date in self.days]
        rows = max(self.new_events, sum(each.rows for each in set(chosen) - set(newer)))
        progress(f"{self._namespace}: {self.new_events:,} new events, {len(self.days):,} days")
        chunks = _divide(chosen)
        firsts = {each: self._first_day(each) for each in DERIVED}
        make = partial(make_tables, self._lake.storage, chunks, firsts)
        spark = open_session() if rows > local_events else None
        results = collect(len(chunks), make, spark)
        for name in DERIVED:
            added = as_actions(each for each in results if each["table"] == name)
            removed = [
                each
                for each in self._opened[name].files(self._namespace, self.days)
                if each.date >= firsts[name]
            ]
            self._opened[name] = self._opened[name].commit(
                added, removed, {position_name(self._namespace): self._last}
            )

    def _count(self, files: Sequence[DataFile]) -> int:
        """Return the number of events behind the position."""
        events = self._opened[EVENTS]
        whole = [each for each in files if each.least["ordinal"] > self._after]
        partly = [each for each in files if each not in whole]
        number = sum(each.rows for each in whole)
        if partly:
            newer = pc.field("ordinal") > self._after
            number += read_table(events.storage, events.table, partly, ["ordinal"], newer).num_rows
        return number

    def _first_day(self, table: str) -> date:
        """Return the day before which a table has been pruned."""
        return first_day(self._opened[table], self._namespace) or date.min


def make_tables(
    lake: Storage, chunks: Sequence[Sequence[DataFile]], firsts: dict[str, date], number: int
) -> list[File]:
    """Compute the tables of some days, write them, and return the files.

    Args:
        lake: The place of the lake.
        chunks: The files of events, those of the same day together.
        firsts: For each table, the first day that it has.
        number: Which chunk.
    """
    events = open_rows(lake.within(EVENTS), TABLES[EVENTS], chunks[number])
    files = []
    with open_database() as database:
        database.register("events", events)
        prepare(database)
        for name, text in TEXTS.items():
            writer = FileWriter(lake.within(name), TABLES[name])
            rows = database.execute(f"SELECT * FROM ({text}) WHERE date >= ?", [firsts[name]])
            for batch in rows.to_arrow_reader(_BATCH):
                writer.add(batch)
            files += writer.finish()
    return files


def prepare(database: DuckDBPyConnection) -> None:
    """Make of `events` what the texts are about."""
    database.execute(f"CREATE TEMP TABLE runs AS {read_sql('runs')}")
    database.execute(f"CREATE TEMP VIEW ended AS {read_sql('ended')}")


def _divide(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Divide files into chunks of whole days."""
    chunks: list[list[DataFile]] = []
    for file in sorted(files, key=lambda each: each.date):
        is_same_day = chunks and chunks[-1][-1].date == file.date
        if not is_same_day and (not chunks or sum(each.rows for each in chunks[-1]) >= CHUNK):
            chunks.append([])
        chunks[-1].append(file)
    return chunks
