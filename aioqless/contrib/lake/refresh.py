"""Merges new events into silver and gold.

Nothing but the touched days, and the files of touched jobs, is read or written. Each table records
the ordinal of the last event that it contains, in the same transaction as its rows. A refresh that
is killed is therefore continued by the next one, and two at once do not count an event twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake import tables
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import first_day
from aioqless.contrib.lake.refresh_tasks import (
    JOBS,
    MERGED,
    PATHS,
    RUNS,
    Result,
    Work,
    find_new_jids,
    find_places,
    run_here,
    run_in_spark,
)
from aioqless.contrib.lake.schema import EVENTS, TABLES
from aioqless.contrib.lake.snapshot import ConcurrentCommit, DataFile, Snapshot
from aioqless.contrib.lake.table_files import FileWriter, as_actions, read_jobs
from aioqless.contrib.lake.tables.columns import array, elements
from aioqless.contrib.lake.tables.paths import COLUMNS as OF_PATHS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DERIVED: Final = (RUNS, *MERGED, PATHS)
PATH_DAYS: Final = 30  # a critical path is followed back to jobs that first ended in these days
LOCAL_EVENTS: Final = 200_000  # as many new events are processed without Spark
ROUND: Final = 1_000_000  # events of one commit, which bounds the memory of the driver
_SCANNED_HERE: Final = 5_000_000  # rows of silver/jobs that are searched for jids without Spark
_CONFLICTS: Final = 10

OpenSession = Callable[[], "SparkSession"]


@dataclass
class Refreshed:
    """What a refresh did: the number of new events, and the days of gold that they changed."""

    events: int = 0
    days: set[tuple[str, date]] = field(default_factory=set)


def refresh(
    lake: Lake,
    open_session: OpenSession,
    progress: Callable[[str], None] = lambda _: None,
    *,
    rebuild: bool = False,
    local_events: int = LOCAL_EVENTS,
) -> Refreshed:
    """Merge the events that came since the last refresh into silver and gold.

    Args:
        lake: The lake.
        open_session: Returns a Spark session; called only when there are many new events.
        progress: Called with a line of text for each step.
        rebuild: Make all tables again, of all events that the lake still has.
        local_events: The number of new events up to which this process does all the work.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    opened = lake.upgrade()
    outdated = {name for name in DERIVED if rebuild or opened[name].is_outdated}
    events = opened[EVENTS]
    done = Refreshed()
    for namespace in sorted({each.namespace for each in events.all_files}):
        _Refresh(
            lake,
            opened,
            namespace,
            done,
            open_session=open_session,
            progress=progress,
            local_events=local_events,
        ).run(outdated)
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
        done: Refreshed,
        *,
        open_session: OpenSession,
        progress: Callable[[str], None],
        local_events: int,
    ) -> None:
        self._lake = lake
        self._events = opened[EVENTS]
        self._namespace = namespace
        self._open_session = open_session
        self._progress = progress
        self._local_events = local_events
        self._done = done
        self._files = self._events.files(namespace)
        self._snapshots = opened  # the latest versions, also for the next namespace

    def run(self, rebuilt: Iterable[str]) -> None:
        """Merge rounds of events until every table has the last one."""
        first = min(each.least["ordinal"] for each in self._files)
        last = max(each.greatest["ordinal"] for each in self._files)
        rebuilt, conflicts = set(rebuilt), 0
        while True:
            after = {
                name: 0
                if name in rebuilt
                else snapshot.transaction(position_name(self._namespace)) or 0
                for name, snapshot in ((each, self._snapshots[each]) for each in DERIVED)
            }
            after = {name: max(ordinal, first - 1) for name, ordinal in after.items()}
            start = min(after.values())
            if start >= last and not rebuilt:
                return
            here = last - start <= self._local_events
            until = last if here else min(last, start + ROUND)
            behind = {name: at for name, at in after.items() if at < until or name in rebuilt}
            self._progress(f"{self._namespace}: entries {start + 1:,} to {until:,} of {last:,}")
            try:
                self._round(behind, until, rebuilt, None if here else self._open_session())
            except (ConcurrentCommit, FileNotFoundError) as error:  # also files erased meanwhile
                conflicts += 1
                if conflicts >= _CONFLICTS:
                    raise ConcurrentCommit(str(error)) from None
                self._snapshots.update(self._lake.upgrade())
                self._events = self._snapshots[EVENTS]
                self._files = self._events.files(self._namespace)
                continue
            self._done.events += self._count(start, until)
            rebuilt.clear()

    def _count(self, start: int, until: int) -> int:
        """Return the number of events behind an ordinal, up to another."""
        work = Work(self._lake.storage, self._files, {}, until, {})
        rows: int = work.read_events(start, until, ["ordinal"]).num_rows
        return rows

    def _round(
        self,
        after: Mapping[str, int],
        until: int,
        rebuilt: set[str],
        spark: SparkSession | None,
    ) -> None:
        work = Work(self._lake.storage, self._files, after, until, self._first_days(rebuilt))
        jids = find_new_jids(work, after[JOBS], spark) if JOBS in after else None
        before = {each.path for each in self._snapshots[JOBS].files(self._namespace)}
        replaced = {name: self._replaced(name, rebuilt) for name in after}
        old = {
            name: _by_day(self._snapshots[name].files(self._namespace))
            for name in after
            if name in MERGED and name != JOBS and name not in rebuilt
        }
        places = self._places(jids, spark) if jids is not None and JOBS not in rebuilt else {}
        work = Work(work.lake, work.events, work.after, work.until, work.first_day, old, places)
        results = run_here(work) if spark is None else run_in_spark(spark, work)
        for name in after:
            if name == PATHS:
                continue
            added = [result for result in results if result["table"] == name]
            removed = list(replaced[name])
            if name == JOBS:
                removed += {each.path: each for each in places.values()}.values()
            for day in {date.fromisoformat(each["date"]) for each in added}:
                removed += old.get(name, {}).get(day, ())
                if name.startswith("gold"):
                    self._done.days.add((self._namespace, day))
            self._commit(name, added, removed, until)
        if PATHS in after:
            jobs = self._snapshots[JOBS].files(self._namespace)
            if jids is None or after[JOBS] != after[PATHS]:
                jids = find_new_jids(work, after[PATHS], spark)
                before = set()
            changed = [each for each in jobs if each.path not in before]
            self._refresh_paths(until, jids, jobs, changed, list(replaced[PATHS]))

    def _first_days(self, rebuilt: set[str]) -> dict[str, date]:
        """Return for each pruned table the first day of which it takes rows.

        A rebuild leaves days of which the events are gone as they are.
        """
        of_events = first_day(self._events, self._namespace)
        found = {}
        for name, snapshot in self._snapshots.items():
            days = [first_day(snapshot, self._namespace), of_events if name in rebuilt else None]
            if known := [each for each in days if each]:
                found[name] = max(known)
        return found

    def _replaced(self, table: str, rebuilt: set[str]) -> Sequence[DataFile]:
        """Return the files that a rebuild of the table replaces."""
        if table not in rebuilt:
            return ()
        first = first_day(self._events, self._namespace) or date.min
        files = self._snapshots[table].files(self._namespace)
        return [each for each in files if each.date >= first]

    def _places(self, jids: pa.Array, spark: SparkSession | None) -> dict[str, DataFile]:
        snapshot = self._snapshots[JOBS]
        files = snapshot.files(self._namespace)
        is_small = sum(each.rows for each in files) <= _SCANNED_HERE
        return find_places(
            self._lake.storage.within(JOBS), JOBS, files, jids, None if is_small else spark
        )

    def _commit(
        self,
        table: str,
        added: Sequence[Result],
        removed: Sequence[DataFile],
        until: int,
    ) -> None:
        self._snapshots[table] = self._snapshots[table].commit(
            as_actions(added),
            removed,
            {position_name(self._namespace): until},
        )

    def _refresh_paths(
        self,
        until: int,
        jids: pa.Array,
        jobs: Sequence[DataFile],
        changed: Sequence[DataFile],
        replaced: list[DataFile],
    ) -> None:
        """Compute the critical paths of the jobs that new events are about.

        Args:
            until: The ordinal of the last event.
            jids: The jobs.
            jobs: All files of jobs.
            changed: Those in which these jobs are.
            replaced: Files of paths that a rebuild replaces.
        """
        waits = pc.list_value_length(pc.field("depends")) > 0
        waited = self._read_jobs(changed, jids, waits)
        if not waited.num_rows:
            self._commit(PATHS, (), replaced, until)
            return
        storage, declared = self._lake.storage.within(PATHS), TABLES[PATHS]
        since = _day_before(waited)
        of_waited = array(waited["jid"])
        _, depends = elements(waited["depends"])
        others = pc.unique(depends.filter(pc.invert(pc.is_in(depends, of_waited))))
        dependencies = self._read_jobs([each for each in jobs if each.date >= since], others)
        files = [
            each
            for each in self._snapshots[PATHS].files(self._namespace)
            if each.date >= since and each not in replaced
        ]
        known = read_jobs(storage, declared, files, others)
        stale = find_places(storage, PATHS, files, of_waited)
        rewritten = list({each.path: each for each in stale.values()}.values())
        kept = read_jobs(storage, declared, rewritten, of_waited, others=True)
        made = tables.paths(waited, dependencies, known).cast(kept.schema)
        writer = FileWriter(storage, declared)
        for batch in pa.concat_tables([kept, made]).combine_chunks().to_batches():
            writer.add(batch)
        self._commit(PATHS, writer.finish().to_pylist(), [*replaced, *rewritten], until)

    def _read_jobs(
        self, files: Sequence[DataFile], jids: pa.Array, condition: pc.Expression | None = None
    ) -> pa.Table:
        storage = self._lake.storage.within(JOBS)
        return read_jobs(storage, TABLES[JOBS], files, jids, OF_PATHS, condition)


def _by_day(files: Iterable[DataFile]) -> dict[date, list[DataFile]]:
    found: dict[date, list[DataFile]] = {}
    for each in files:
        found.setdefault(each.date, []).append(each)
    return found


def _day_before(jobs: pa.Table) -> date:
    """Return the first day of which jobs are looked up that others depended on."""
    popped = pc.min(jobs["popped"]).as_py()
    return popped.date() - timedelta(days=PATH_DAYS) if popped else date.min
