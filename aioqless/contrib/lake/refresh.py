"""Computes the tables of silver and gold from the events, again for each day that has new ones.

A day of a namespace is the unit: what its events say is in the same partition of every table. Spark
computes all days at once, and its tasks write the files; here they are planned and committed. Each
table records the ordinal of the last event that it contains, in the transaction that replaces its
files. A refresh that is killed is therefore continued by the next one; two at once do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import (
    VERSION_PROPERTY,
    AddedFile,
    ConcurrentCommit,
    DataFile,
    OpenTable,
    Partition,
)
from aioqless.contrib.lake.position import (
    erased_name,
    first_day,
    refreshed_name,
    transaction_names,
)
from aioqless.contrib.lake.schema import DERIVED, EVENTS
from aioqless.contrib.lake.spark_errors import detect_deleted_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Returns a session for a number of rows; it starts one at the first call.
OpenSession: TypeAlias = Callable[[int], "SparkSession"]
File = TypeVar("File", AddedFile, DataFile)

_CONFLICTS: Final = 10


@dataclass
class Refreshed:
    """What a refresh did: the number of new events, and the days that it computed."""

    events: int = 0
    days: set[Partition] = field(default_factory=set)


def refresh(
    lake: Lake,
    open_session: OpenSession,
    progress: Callable[[str], None] = lambda _: None,
    *,
    rebuilt: Container[date] = (),
) -> Refreshed:
    """Compute all tables of each day that has events since the last refresh.

    Args:
        lake: The lake.
        open_session: Returns a Spark session; not called if the tables lack nothing.
        progress: Called with a line of text for each namespace.
        rebuilt: Days that are computed anyway, of all events that the lake still has.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    if not rebuilt and _is_up_to_date(lake):
        return Refreshed()
    opened = lake.upgrade()
    outdated = [opened[name] for name in DERIVED if opened[name].is_outdated]
    for conflicts in range(1, _CONFLICTS + 1):
        files = (each for name in (EVENTS, *DERIVED) for each in opened[name].all_files)
        plans = [
            _Plan(opened, namespace, rebuilt, is_first=bool(outdated))
            for namespace in sorted({each.namespace for each in files})
        ]
        plans = [each for each in plans if each.is_needed]
        for each in plans:
            progress(f"{each.namespace}: {each.new_events:,} new events, {len(each.days):,} days")
        try:
            _run(opened, plans, open_session)
            break
        except ConcurrentCommit:
            if conflicts == _CONFLICTS:
                raise
            opened = lake.upgrade()
    with suppress(ConcurrentCommit):  # another refresh does so
        for table in outdated:
            table.set_property(VERSION_PROPERTY, str(table.table.version))
        lake.mark_whole()
    return Refreshed(
        sum(each.new_events for each in plans),
        {(each.namespace, day) for each in plans for day in each.days},
    )


def _is_up_to_date(lake: Lake) -> bool:
    """Whether the table that is committed last has all events, so that all others have them."""
    if not lake.is_whole():
        return False
    last = lake.table(DERIVED[-1])
    return all(
        each.greatest["ordinal"] <= (last.transaction(refreshed_name(each.namespace)) or 0)
        for each in lake.table(EVENTS).all_files
    )


class _Plan:
    """The days to compute of a namespace, to the last event of a version of bronze."""

    def __init__(
        self,
        opened: Mapping[str, OpenTable],
        namespace: str,
        rebuilt: Container[date],
        *,
        is_first: bool,
    ) -> None:
        self.namespace = namespace
        files = opened[EVENTS].files(namespace)
        # The event of the position may be erased.
        last = opened[EVENTS].transaction(transaction_names(namespace)["ordinal"]) or 0
        self.last = max([last, *(each.greatest["ordinal"] for each in files)])
        positions = [opened[each].transaction(refreshed_name(namespace)) for each in DERIVED]
        self._after = 0 if is_first else min(each or 0 for each in positions)
        newer = {each.date for each in files if each.greatest["ordinal"] > self._after}
        first = first_day(opened[EVENTS], namespace) or date.min
        again = {each.date for each in files if each.date in rebuilt}
        if rebuilt and opened[EVENTS].transaction(
            erased_name(namespace)
        ):  # all of a day may be gone
            made = (each.date for name in DERIVED for each in opened[name].files(namespace))
            again.update(day for day in made if day in rebuilt)
        self.days = {day for day in newer | again if day >= first}
        self.files = [each for each in files if each.date in self.days]
        self.firsts = {each: first_day(opened[each], namespace) or date.min for each in DERIVED}
        partitions = {(namespace, each) for each in newer}
        ordinals = opened[EVENTS].read(partitions, ["ordinal"], f"ordinal > {self._after}")
        self.new_events = ordinals.num_rows

    @property
    def is_needed(self) -> bool:
        """Whether tables lack anything."""
        return bool(self.days) or self._after < self.last

    def has(self, table: str, file: AddedFile | DataFile) -> bool:
        """Whether a file is of these days, and of one that isn't pruned from the table."""
        return (
            file.namespace == self.namespace
            and file.date in self.days
            and file.date >= self.firsts[table]
        )


def _run(opened: Mapping[str, OpenTable], plans: list[_Plan], open_session: OpenSession) -> None:
    """Compute the days, and commit each table."""
    files = [file for each in plans for file in each.files]
    made: Mapping[str, list[AddedFile]] = {}
    if files:
        from aioqless.contrib.lake.spark.transform import make_tables

        spark = open_session(sum(each.rows for each in files))
        with detect_deleted_files():
            made = make_tables(spark, opened, files)
    for name in DERIVED if plans else ():
        table = opened[name]
        if any(
            (table.transaction(refreshed_name(each.namespace)) or 0) > each.last for each in plans
        ):
            raise ConcurrentCommit("another refresh is further")  # its rows are of later events
        table.commit(
            _choose(name, made.get(name, ()), plans),
            _choose(name, table.all_files, plans),
            {refreshed_name(each.namespace): each.last for each in plans},
        )


def _choose(table: str, files: Iterable[File], plans: list[_Plan]) -> list[File]:
    """Return the files of the days that are replaced in a table."""
    of = {each.namespace: each for each in plans}
    return [each for each in files if each.namespace in of and of[each.namespace].has(table, each)]
