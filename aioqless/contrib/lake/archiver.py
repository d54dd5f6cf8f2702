"""The archiver moves a namespace's archive stream into the lake, each entry exactly once.

A batch is a part of the stream, which is planned here. Tasks of Spark read it from Redis and write
the files, which are added to the table in one commit that records the last entry of the batch. Only
what is committed is trimmed from Redis. A batch that was not committed is read again from the
position in the table; of two archivers at once, one fails to commit.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake import backlog
from aioqless.contrib.lake.batch import CUT_TOO_FAST, Batch, plan_batch
from aioqless.contrib.lake.event_log import EventLog, parse_id
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import AddedFile, ConcurrentCommit, OpenTable
from aioqless.contrib.lake.position import Position, count_missing, first_day
from aioqless.contrib.lake.refresh import OpenSession
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE
from aioqless.contrib.lake.source.async_bridge import call
from aioqless.contrib.lake.source.options import ClientOptions, ClientSettings
from aioqless.contrib.lake.spark_errors import find_reason
from aioqless.contrib.lake.storage import LakeError, StoreUnreachable
from aioqless.errors import AioqlessError

Result = TypeVar("Result")

_BATCH_BYTES: Final = 2**28
_MAX_CUT: Final = 10  # batches in a row of which entries were cut before they were read
_MAX_FAILURES: Final = 3  # in a row, while Redis is there
_LONGEST_PAUSE: Final = 30.0


def repeat(
    act: Callable[[], object],
    stop: threading.Event,
    every: float,
    is_redis_away: Callable[[], bool],
    report: Callable[[str], object],
) -> None:
    """Call a function at an interval in seconds, until `stop`.

    Outages of Redis and of the object store are waited for; after a few other failures in a row,
    the last one is raised.
    """
    failures, pause = 0, 1.0
    while not stop.is_set():
        try:
            act()
        except ConcurrentCommit:
            raise
        except Exception as error:
            failures, pause = failures + 1, min(pause * 2, _LONGEST_PAUSE)
            is_outage = isinstance(error, StoreUnreachable) or is_redis_away()
            if not is_outage and failures >= _MAX_FAILURES:
                raise
            report(f"stopped by {find_reason(str(error))[:200]}; again in {pause:g} s")
            stop.wait(pause)
        else:
            failures, pause = 0, 1.0
            stop.wait(every)


@dataclass
class Archived:
    """What an archiver has done since it started."""

    batches: int = 0
    events: int = 0
    unreadable: int = 0  # entries that went to quarantine
    swept: int = 0  # ends by other clients, or while the archive was off
    lost: int = 0  # entries that were deleted before they were read, or are missing from the lake


class Archiver:
    """Moves the archive of a namespace into a lake.

    Args:
        lake: The lake, of which no other thread may use this object.
        open_session: Returns a Spark session; not called if there is nothing to archive.
        url: The URL of Redis.
        namespace: The namespace.
        entries: Maximum number of entries of a batch.
        report: Called with a line about each step.
    """

    def __init__(
        self,
        lake: Lake,
        open_session: OpenSession,
        url: str | None = None,
        namespace: str = "ql",
        *,
        entries: int = 100_000,
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._open_session = open_session
        self._lake = lake
        self._settings: ClientSettings = ClientOptions(url, namespace).client_settings()
        self._entries = entries
        self._report = report
        self._done = Archived()
        self._is_older_copy = False
        self._swept = float("-inf")

    @property
    def done(self) -> Archived:
        """What the archiver has done."""
        return self._done

    @property
    def namespace(self) -> str:
        """The namespace that is archived."""
        return self._settings.namespace

    def once(self, stop: threading.Event | None = None, *, take_over: bool = False) -> Archived:
        """Archive everything that is in the stream now.

        Args:
            stop: Ends the work after the current batch.
            take_over: Archive although another lake did so before, or although entries that were
                trimmed are missing from this one.

        Raises:
            LakeError: The lake and the stream don't belong together, or another archiver of the
                namespace committed meanwhile.
        """
        self.check(take_over)
        self._sweep()
        self._drain(stop or threading.Event())
        return self._done

    def continuously(
        self, stop: threading.Event, *, every: float = 10.0, take_over: bool = False
    ) -> Archived:
        """Archive what arrives at an interval in seconds, until `stop`; see `once`.

        A snapshot of the queues is taken each minute. Outages of Redis and of the object store are
        waited for.
        """
        self.check(take_over)
        repeat(partial(self.step, stop), stop, every, self.is_redis_away, self._report)
        return self._done

    def step(self, stop: threading.Event) -> None:
        """Archive everything that is in the stream now, and each minute take a snapshot."""
        if time.monotonic() - self._swept >= backlog.INTERVAL:
            self._sweep()
            self._swept = time.monotonic()
            backlog.store_backlog(self._lake, self._ask(backlog.read_backlog))
        self._drain(stop)

    def _drain(self, stop: threading.Event) -> None:
        """Archive batches until the position is that of the stream's last entry."""
        events, quarantine = self._lake.table(EVENTS), self._lake.table(QUARANTINE)
        cut = 0
        while not stop.is_set():
            batch = self._ask(partial(self._plan, events=events, quarantine=quarantine))
            if batch is None:
                return
            cut = 0 if self._archive(batch, events, quarantine) else cut + 1
            if cut == _MAX_CUT:
                raise AioqlessError(CUT_TOO_FAST)

    async def _plan(self, client: Client, events: OpenTable, quarantine: OpenTable) -> Batch | None:
        """Return the next batch."""
        log, position = EventLog(client), Position.of(events, self.namespace)
        if ids := await log.list_unmatched(position.id):
            position = self._rewind(position, ids, events, quarantine)
        return await plan_batch(
            log, position, events.table_id, entries=self._entries, size=_BATCH_BYTES
        )

    def _rewind(self, position: Position, ids: Sequence[str], *tables: OpenTable) -> Position:
        """Return the position up to which the lake has the entries of a recreated stream.

        If the clock of its server is behind, entries that came since have ids that are not above
        the last archived one.
        """
        days = [datetime.fromtimestamp(parse_id(id)[0] / 1000, UTC).date() for id in ids]
        known: set[str] = set()
        for each in tables:
            partitions = {file.partition for file in each.files(self.namespace, set(days))}
            known.update(each.read(partitions, ["id"])["id"].to_pylist())
            if first := first_day(each, self.namespace):
                known.update(id for id, day in zip(ids, days, strict=True) if day < first)
        archived = [number for number, id in enumerate(ids, 1) if id in known]
        read = archived[-1] if archived else 0
        if read == len(ids):  # Redis was restored from before it had the last archived entry
            return position
        self._report(
            f"the stream was recreated by a server whose clock is behind: {len(ids) - read:,} "
            f"entries have ids that are not above {position.id}, the last archived one"
        )
        ms, seq = parse_id(ids[read - 1]) if read else (0, 0)
        return replace(position, ms=ms, seq=seq)

    def _archive(self, batch: Batch, events: OpenTable, quarantine: OpenTable) -> bool:
        """Write a batch and commit it; rejected entries first, so that none is trimmed before.

        If only the quarantine is committed, the batch is read again, and entries up to the
        position of the quarantine aren't rejected again.

        Returns:
            Whether the tasks found all entries; else nothing was committed.
        """
        quarantined = Position.of(quarantine, self.namespace).ordinal
        end, before = batch.end, Position.of(events, self.namespace)
        if lost := end.lost - before.lost:  # some may have been rejected before that
            lost -= self._count_rejected(quarantine, before.ordinal, before.ordinal + lost)
            end = replace(end, lost=before.lost + lost)
        made = self._write(batch, events, quarantine, quarantined)
        valid, rejected = made[EVENTS], made[QUARANTINE]
        rows = sum(each.rows for each in (*valid, *rejected))
        if quarantined > (first := batch.ranges[0].ordinal):
            rows += self._count_rejected(quarantine, first, min(quarantined, end.ordinal))
        if rows != batch.count:
            self._refuse_other(before)
            return False
        transactions = end.transactions(self.namespace)
        try:
            if rejected:
                quarantine.commit(rejected, transactions=transactions)
                unreadable = sum(each.rows for each in rejected)
                self._done.unreadable += unreadable
                self._report(f"{unreadable:,} entries to quarantine")
            events.commit(valid, transactions=transactions)
        except ConcurrentCommit:
            self._refuse_other(before)
            return True  # its metadata changed: the batch is read again
        self._note(sum(each.rows for each in valid), end, lost)
        return True

    def _refuse_other(self, before: Position) -> None:
        """Raise ConcurrentCommit if the position is no longer what it was."""
        if Position.of(self._lake.table(EVENTS), self.namespace) != before:
            raise ConcurrentCommit(
                f"another archiver of {self.namespace} is at work on {self._lake.url}; this one "
                "committed nothing of its batch"
            ) from None

    def _write(
        self, batch: Batch, events: OpenTable, quarantine: OpenTable, quarantined: int
    ) -> dict[str, list[AddedFile]]:
        """Have tasks write the entries; those up to a number are rejected already."""
        from aioqless.contrib.lake.spark.transform import make_entries

        options = {"namespace": self.namespace, "ranges": json.dumps([*map(astuple, batch.ranges)])}
        if self._settings.url is not None:
            options["url"] = self._settings.url
        return make_entries(
            self._open_session(batch.count), options, events, quarantine, quarantined
        )

    def _count_rejected(self, quarantine: OpenTable, after: int, last: int) -> int:
        """Return how many entries with numbers behind one up to another are in the quarantine."""
        known = {each.partition for each in quarantine.files(self.namespace)}
        where = f"ordinal > {after} AND ordinal <= {last}"
        return int(quarantine.read(known, ["ordinal"], where).num_rows)

    def _note(self, events: int, end: Position, lost: int) -> None:
        self._done.batches += 1
        self._done.events += events
        self._done.lost += lost
        self._report(f"batch up to entry {end.ordinal:,}: {events:,} events")
        if lost:
            self._report(
                f"{lost:,} events were archived and trimmed, but are not in this copy of the lake"
                if self._is_older_copy
                else f"{lost:,} events were cut before they were read: raise archive-length, or "
                "set archive-when-full to hold"
            )
        self._is_older_copy = False

    def check(self, take_over: bool) -> None:
        """Refuse a stream of which another lake, or a newer copy of this one, has a part.

        Args:
            take_over: See `once`.

        Raises:
            LakeError: The lake and the stream don't belong together.
        """
        state: ArchiveState = self._ask(lambda client: client.archive.state())
        # Opened after the question: a position that is committed later can't be trimmed before.
        events = self._lake.table(EVENTS)
        reader, position = events.table_id, Position.of(events, self.namespace)
        if state.reader not in (None, reader):
            if not take_over:
                raise LakeError(
                    f"another lake archives {self.namespace}: reader {state.reader} has it up to "
                    f"entry {state.read}. Two that trim one stream would each miss what the other "
                    "has; --take-over makes this one the only one"
                )
            self._ask(lambda client: client.archive.trim("0-0", reader, takeover=True))
        elif state.read and parse_id(state.read) > (position.ms, position.seq):
            if not take_over:
                raise LakeError(
                    f"{self._lake.url} has the events of {self.namespace} up to entry "
                    f"{position.id}, but those up to {state.read} were archived and trimmed: it is "
                    "an older copy of the lake. Restore the newer one; --take-over continues "
                    "without the missing events"
                )
            self._is_older_copy = True
        self._check_rows(events, position, take_over)
        if not state.on:
            self._report(
                f"the archive of {self.namespace} is off: nothing comes in until the shared "
                "option `archive` is `on`"
            )

    def _check_rows(self, events: OpenTable, position: Position, take_over: bool) -> None:
        """Refuse tables without rows that were archived, or take over and count them as lost."""
        quarantine = self._lake.table(QUARANTINE)
        for each in (events, quarantine):
            each.check_files(forget=take_over)
        missing = count_missing(events, quarantine, self.namespace)
        if missing <= 0:
            return
        if not take_over:
            raise LakeError(
                f"{self._lake.url} lacks {missing:,} of the {position.ordinal:,} entries of "
                f"{self.namespace} that were archived and trimmed: an earlier version of {EVENTS} "
                f"or {QUARANTINE} was restored, or another program deleted rows. Restore the "
                "latest version; --take-over continues without the missing entries"
            )
        lost = replace(position, lost=position.lost + missing)
        events.append((), lost.transactions(self.namespace))
        self._done.lost += missing
        self._report(f"{missing:,} entries were archived and trimmed, but are not in this lake")

    def _sweep(self) -> None:
        """Have the ends that other clients recorded added to the stream."""
        swept = self._ask(lambda client: client.archive.sweep())
        self._done.swept += swept.found
        if swept.found:
            self._report(
                f"swept: {swept.found:,} jobs that other clients ended, or that ended while the "
                f"archive was off; {len(swept.missing):,} more were deleted before"
            )

    def is_redis_away(self) -> bool:
        """Whether Redis doesn't answer."""
        try:
            self._ask(lambda client: client.archive.state())
        except (*REDIS_UNAVAILABLE, OSError):
            return True
        return False

    def _ask(self, act: Callable[[Client], Awaitable[Result]]) -> Result:
        return call(self._settings, act)
