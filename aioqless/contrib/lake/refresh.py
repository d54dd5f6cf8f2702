"""Computes the tables of silver and gold from the events, again for each day that has new ones.

A day of a namespace is the unit: what its events say is in the same partition of every table. Each
table records the ordinal of the last event that it contains, in the transaction that replaces its
rows. A refresh that is killed is therefore continued by the next one; two at once do no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aioqless.contrib.lake.database import open_database, read_sql
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import (
    VERSION_PROPERTY,
    ConcurrentCommit,
    OpenTable,
    Partition,
)
from aioqless.contrib.lake.position import erased_name, first_day, transaction_names
from aioqless.contrib.lake.schema import EVENTS, TABLES
from aioqless.contrib.lake.tasks import Item, OpenSession, Rows, run_tasks

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LOCAL_EVENTS: Final = 200_000  # of days that this process computes without Spark
CHUNK: Final = 100_000  # events of days that a task computes; a day is never divided
GROUP: Final = 2_000_000  # events of chunks whose rows Spark returns at once
MINUTE: Final = 60_000_000
_CONFLICTS: Final = 10
_BATCH: Final = 50_000  # rows

# Each table with its text, made of the views `events`, `runs` and `ended`; by name, as tasks
# return them.
TEXTS: Final = {
    "gold/failures": read_sql("failures"),
    "gold/klasses": read_sql("groups", keys="queue, klass", rows="FROM ended"),
    "gold/tags": read_sql(
        "groups",
        keys="queue, klass, tag",
        rows="SELECT *, unnest(list_distinct(tags)) AS tag FROM ended",
    ),
    "gold/throughput": read_sql("throughput", micros=MINUTE),
    "gold/workers": read_sql(
        "groups", keys="queue, worker", rows="FROM ended WHERE worker IS NOT NULL"
    ),
    "silver/runs": "FROM runs",
}
DERIVED: Final = tuple(TEXTS)


@dataclass
class Refreshed:
    """What a refresh did: the number of new events, and the days that it computed."""

    events: int = 0
    days: set[Partition] = field(default_factory=set)


def refresh(
    lake: Lake,
    progress: Callable[[str], None] = lambda _: None,
    *,
    rebuilt: Container[date] = (),
    open_session: OpenSession | None = None,
    local_events: int = 0,
) -> Refreshed:
    """Compute all tables of each day that has events since the last refresh.

    Args:
        lake: The lake.
        progress: Called with a line of text for each namespace.
        rebuilt: Days that are computed anyway, of all events that the lake still has.
        open_session: Returns a Spark session whose tasks compute the days; called only if they have
            more than `local_events` events. Without it, this process does all the work.
        local_events: The number of events that this process computes by itself.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    if not rebuilt and _is_up_to_date(lake):
        return Refreshed()
    opened = lake.upgrade()
    outdated = [opened[name] for name in DERIVED if opened[name].is_outdated]
    done = Refreshed()
    files = (each for name in (EVENTS, *DERIVED) for each in opened[name].all_files)
    for namespace in sorted({each.namespace for each in files}):
        for conflicts in range(1, _CONFLICTS + 1):
            work = _Refresh(opened, namespace, rebuilt, is_first=bool(outdated))
            try:
                work.run(open_session, progress, local_events)
                break
            except ConcurrentCommit:
                if conflicts == _CONFLICTS:
                    raise
                opened = lake.upgrade()
        done.events += work.new_events
        done.days |= {(namespace, each) for each in work.days}
    with suppress(ConcurrentCommit):  # another refresh does so
        for table in outdated:
            table.set_property(VERSION_PROPERTY, str(table.table.version))
        lake.mark_whole()
    return done


def _is_up_to_date(lake: Lake) -> bool:
    """Whether the table that is committed last has all events, so that all others have them."""
    if not lake.is_whole():
        return False
    last = lake.table(DERIVED[-1])
    return all(
        each.greatest["ordinal"] <= (last.transaction(position_name(each.namespace)) or 0)
        for each in lake.table(EVENTS).all_files
    )


def position_name(namespace: str) -> str:
    """Return the transaction name under which a table records its last ordinal."""
    return f"refresh:{namespace}"


class _Refresh:
    """The refresh of one namespace, to the last event of a version of bronze."""

    def __init__(
        self,
        opened: Mapping[str, OpenTable],
        namespace: str,
        rebuilt: Container[date],
        *,
        is_first: bool,
    ) -> None:
        self._opened = opened
        self._namespace = namespace
        self._files = opened[EVENTS].files(namespace)
        # The event of the position may be erased.
        last = opened[EVENTS].transaction(transaction_names(namespace)["ordinal"]) or 0
        self._last = max([last, *(each.greatest["ordinal"] for each in self._files)])
        positions = [opened[each].transaction(position_name(namespace)) for each in DERIVED]
        self._after = 0 if is_first else min(each or 0 for each in positions)
        self._newer = {each.date for each in self._files if each.greatest["ordinal"] > self._after}
        first = first_day(opened[EVENTS], namespace) or date.min
        again = {each.date for each in self._files if each.date in rebuilt}
        if rebuilt and opened[EVENTS].transaction(
            erased_name(namespace)
        ):  # all of a day may be gone
            made = (each.date for name in DERIVED for each in opened[name].files(namespace))
            again.update(day for day in made if day in rebuilt)
        self.days = {day for day in self._newer | again if day >= first}
        self.new_events = 0

    def run(
        self,
        open_session: OpenSession | None,
        progress: Callable[[str], None],
        local_events: int,
    ) -> None:
        """Compute the days, and commit each table; the position comes with the last days."""
        if not self.days and self._after >= self._last:
            return
        newer = {(self._namespace, each) for each in self._newer}
        ordinals = self._opened[EVENTS].read(newer, ["ordinal"], f"ordinal > {self._after}")
        self.new_events = ordinals.num_rows
        progress(f"{self._namespace}: {self.new_events:,} new events, {len(self.days):,} days")
        firsts = {
            each: first_day(self._opened[each], self._namespace) or date.min for each in DERIVED
        }
        if sum(each.rows for each in self._files if each.date in self.days) <= local_events:
            open_session = None
        rows = Counter[date]()
        for each in self._files:
            rows[each.date] += each.rows
        chunks = _divide(sorted(self.days), rows.__getitem__, CHUNK)  # without days, an empty one
        groups = _divide(
            chunks, lambda days: sum(rows[day] for day in days), GROUP if open_session else 0
        )
        make = partial(make_tables, self._opened[EVENTS], self._namespace, firsts)
        for group in groups:
            is_last = group is groups[-1]
            made = groupby(run_tasks(group, make, open_session), itemgetter(0))
            name, of_table = next(made, (None, iter(())))
            for table in DERIVED:
                if name == table:
                    self._commit(table, (each for _, each in of_table), group, firsts, is_last)
                    name, of_table = next(made, (None, iter(())))
                else:
                    self._commit(table, (), group, firsts, is_last)

    def _commit(
        self,
        table: str,
        rows: Iterable[pa.RecordBatch],
        chunks: Sequence[Sequence[date]],
        firsts: Mapping[str, date],
        is_last: bool,
    ) -> None:
        name, opened = position_name(self._namespace), self._opened[table]
        if (opened.transaction(name) or 0) > self._last:  # its rows are of later events
            raise ConcurrentCommit(f"another refresh of {self._namespace} is further")
        days = {day for chunk in chunks for day in chunk if day >= firsts[table]}
        position = self._last if is_last else opened.transaction(name) or 0
        opened.replace(rows, {(self._namespace, day) for day in days}, {name: position})


def _divide(items: Iterable[Item], size: Callable[[Item], int], most: int) -> list[list[Item]]:
    """Divide items into lists, each of which ends with the item by which its size is `most`."""
    lists, total = [list[Item]()], 0
    for item in items:
        if lists[-1] and total >= most:
            lists.append([])
            total = 0
        lists[-1].append(item)
        total += size(item)
    return lists


def make_tables(
    events: OpenTable, namespace: str, firsts: Mapping[str, date], days: Sequence[date]
) -> Rows:
    """Yield the rows of each table for some days, table by table.

    Args:
        events: The table of events.
        namespace: The namespace.
        firsts: For each table, the first day that it has.
        days: The days.
    """
    with open_database() as database:
        database.register("events", events.rows({(namespace, day) for day in days}))
        prepare(database)
        for name, text in TEXTS.items():
            order = ", ".join(("date", *TABLES[name].order))
            query = f"SELECT * FROM ({text}) WHERE date >= ? ORDER BY {order}"
            # Not a relation: that takes twenty times as long to return rows.
            rows = database.execute(query, [firsts[name]])
            for batch in rows.to_arrow_reader(_BATCH):
                yield name, batch


def prepare(database: DuckDBPyConnection) -> None:
    """Make of `events` what the texts are about."""
    database.execute(f"CREATE TEMP TABLE runs AS {read_sql('runs')}")
    database.execute(f"CREATE TEMP VIEW ended AS {read_sql('ended')}")
