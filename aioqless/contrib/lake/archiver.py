"""The archiver moves a namespace's archive stream into the lake, each entry exactly once.

A batch is a range of the stream, of which this process makes rows, or tasks of Spark if it is
asked for. They are added to the table in one commit that records the last entry of the batch. Only
what is committed is trimmed from Redis. A batch that was not committed is read again from the
position in the table; of two archivers at once, one fails to commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake import backlog
from aioqless.contrib.lake.batch import Batch, read_batch
from aioqless.contrib.lake.event_columns import batch_of
from aioqless.contrib.lake.event_log import Entry, EventLog, parse_id
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import ConcurrentCommit, OpenTable
from aioqless.contrib.lake.position import Position, count_missing, first_day
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE
from aioqless.contrib.lake.session import find_reason
from aioqless.contrib.lake.source.async_bridge import call
from aioqless.contrib.lake.source.options import ClientOptions, ClientSettings
from aioqless.contrib.lake.storage import LakeError, StoreUnreachable
from aioqless.contrib.lake.tasks import OpenSession, Rows, run_tasks

Result = TypeVar("Result")
Page: TypeAlias = pa.RecordBatch | tuple[int, list[Entry], str]

_BATCH_BYTES: Final = 2**28
_MAX_FAILURES: Final = 3  # in a row, while Redis is there
_LONGEST_PAUSE: Final = 30.0


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
        url: The URL of Redis.
        namespace: The namespace.
        entries: Maximum number of entries of a batch.
        open_session: Returns the Spark session whose tasks make rows of entries; without it, this
            process does.
        report: Called with a line about each step.
    """

    def __init__(
        self,
        lake: Lake,
        url: str | None = None,
        namespace: str = "ql",
        *,
        entries: int = 100_000,
        open_session: OpenSession | None = None,
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._open_session = open_session
        self._lake = lake
        self._settings: ClientSettings = ClientOptions(url, namespace).client_settings()
        self._entries = entries
        self._report = report
        self._done = Archived()
        self._is_older_copy = False

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
        self._check(take_over)
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
        self._check(take_over)
        failures, pause, swept = 0, 1.0, float("-inf")
        while not stop.is_set():
            try:
                if time.monotonic() - swept >= backlog.INTERVAL:
                    self._sweep()
                    swept = time.monotonic()
                    backlog.store_backlog(self._lake, self._ask(backlog.read_backlog))
                self._drain(stop)
            except ConcurrentCommit:
                raise
            except Exception as error:
                failures, pause = failures + 1, min(pause * 2, _LONGEST_PAUSE)
                is_outage = isinstance(error, StoreUnreachable) or self._is_redis_away()
                if not is_outage and failures >= _MAX_FAILURES:
                    raise
                self._report(f"stopped by {find_reason(str(error))[:200]}; again in {pause:g} s")
                stop.wait(pause)
            else:
                failures, pause = 0, 1.0
                stop.wait(every)
        return self._done

    def _drain(self, stop: threading.Event) -> None:
        """Archive batches until the position is that of the stream's last entry."""
        events, quarantine = self._lake.table(EVENTS), self._lake.table(QUARANTINE)
        while not stop.is_set():
            batch = self._ask(partial(self._read, events=events, quarantine=quarantine))
            if batch is None:
                return
            self._archive(batch, events, quarantine)

    async def _read(
        self, client: Client, events: OpenTable, quarantine: OpenTable
    ) -> Batch[Page] | None:
        """Read the next batch; its pages are rows already unless Spark is to make them."""
        log, position = EventLog(client), Position.of(events, self.namespace)
        if ids := await log.list_unmatched(position.id):
            position = self._rewind(position, ids, events, quarantine)
        return await read_batch(
            log,
            position,
            events.table_id,
            partial(make_page, self.namespace, is_parsed=self._open_session is None),
            entries=self._entries,
            size=_BATCH_BYTES,
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

    def _archive(self, batch: Batch[Page], events: OpenTable, quarantine: OpenTable) -> None:
        """Read a batch and commit it; rejected entries first, so that none is trimmed before.

        If only the quarantine is committed, the batch is read again, and entries up to the
        position of the quarantine aren't rejected again.
        """
        quarantined = Position.of(quarantine, self.namespace).ordinal
        end, before = batch.end, Position.of(events, self.namespace)
        if lost := end.lost - before.lost:  # some may have been rejected before that
            known = {each.partition for each in quarantine.files(self.namespace)}
            where = f"ordinal > {before.ordinal} AND ordinal <= {before.ordinal + lost}"
            lost -= quarantine.read(known, ["ordinal"], where).num_rows
            end = replace(end, lost=before.lost + lost)
        transactions = end.transactions(self.namespace)
        valid, rejected = list[pa.RecordBatch](), list[pa.RecordBatch]()
        for _, rows in run_tasks(batch.pages, make_rows, self._open_session):
            is_valid = pc.is_null(rows["problem"])
            is_new = pc.greater(rows["ordinal"], quarantined)
            valid.append(rows if pc.all(is_valid).as_py() else rows.filter(is_valid))
            rejected.append(rows.filter(pc.and_not(is_new, is_valid)))
        try:
            if unreadable := sum(map(len, rejected)):
                quarantine.append(rejected, transactions)
                self._done.unreadable += unreadable
                self._report(f"{unreadable:,} entries to quarantine")
            events.append(valid, transactions)
        except ConcurrentCommit:
            if Position.of(self._lake.table(EVENTS), self.namespace) == before:
                return  # its metadata changed: the batch is read again
            raise ConcurrentCommit(
                f"another archiver of {self.namespace} is at work on {self._lake.url}; this one "
                "committed nothing of its batch"
            ) from None
        self._note(sum(map(len, valid)), end, lost)

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

    def _check(self, take_over: bool) -> None:
        """Refuse a stream of which another lake, or a newer copy of this one, has a part."""
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

    def _is_redis_away(self) -> bool:
        try:
            self._ask(lambda client: client.archive.state())
        except (*REDIS_UNAVAILABLE, OSError):
            return True
        return False

    def _ask(self, act: Callable[[Client], Awaitable[Result]]) -> Result:
        return call(self._settings, act)


def make_page(namespace: str, ordinal: int, entries: list[Entry], *, is_parsed: bool) -> Page:
    """Return entries as rows, or as what `make_rows` makes rows of."""
    return batch_of(ordinal, entries, namespace) if is_parsed else (ordinal, entries, namespace)


def make_rows(page: Page) -> Rows:
    """Yield the rows of a page."""
    yield "entries", page if isinstance(page, pa.RecordBatch) else batch_of(*page)
