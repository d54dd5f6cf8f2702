"""The archiver moves a namespace's archive stream into the lake, each entry exactly once.

A batch is a range of the stream. Tasks of Spark write its shares as Parquet files, or this process
does if they are few. The driver adds the files to the table in one commit that records the last
entry of the batch. Only what is committed is trimmed from Redis. A batch that was not committed is
planned again from the position in the table; of two archivers at once, one fails to commit.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake import backlog
from aioqless.contrib.lake.batch import Batch, plan_batch, write_share
from aioqless.contrib.lake.event_log import EventLog, parse_id
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import Position, erased_name, first_day
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.contrib.lake.session import find_reason
from aioqless.contrib.lake.snapshot import ConcurrentCommit, Snapshot
from aioqless.contrib.lake.source.async_bridge import call
from aioqless.contrib.lake.source.options import ClientSettings, Options
from aioqless.contrib.lake.storage import LakeError, Storage, StoreUnreachable
from aioqless.contrib.lake.table_files import File, as_actions, collect, read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

SWEEP_INTERVAL: Final = 60.0
LOCAL_SHARES: Final = 4
_BATCH_BYTES: Final = 2**30
_MAX_FAILURES: Final = 3  # in a row, while Redis is there
_LONGEST_PAUSE: Final = 30.0


@dataclass
class Archived:
    """What an archiver has done since it started."""

    batches: int = 0
    events: int = 0
    unreadable: int = 0  # entries that went to quarantine
    missing: int = 0  # ended jobs without a hash, which went there, too
    swept: int = 0  # ends of jobs by other clients
    lost: int = 0  # entries that were deleted before they were read


class Archiver:
    """Moves the archive of a namespace into a lake.

    Args:
        open_session: Returns the session whose executors read Redis and write files; called only
            when a batch is large.
        lake: The lake.
        url: The URL of Redis.
        namespace: The namespace.
        entries: Maximum number of entries of a batch.
        local_shares: Batches of at most so many shares, of 25,000 entries or 64 MiB each, are
            written by this process.
        report: Called with a line about each step.
    """

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        lake: Lake,
        url: str | None = None,
        namespace: str = "ql",
        *,
        entries: int = 100_000,
        local_shares: int = LOCAL_SHARES,
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        given = {"namespace": namespace, **({"url": url} if url is not None else {})}
        self._open_session = open_session
        self._lake = lake
        self._settings: ClientSettings = Options(given).client_settings()
        self._entries = entries
        self._local_shares = local_shares
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
        snapshot = float("-inf")
        while not stop.is_set():
            try:
                if time.monotonic() - swept >= SWEEP_INTERVAL:
                    self._sweep()
                    swept = time.monotonic()
                if time.monotonic() - snapshot >= backlog.INTERVAL:
                    snapshot = time.monotonic()
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
        events, quarantine = self._lake.snapshot(EVENTS), self._lake.snapshot(QUARANTINE)
        while not stop.is_set():
            batch = self._ask(partial(self._plan, events=events, quarantine=quarantine))
            if batch is None:
                return
            events, quarantine = self._archive(batch, events, quarantine)

    async def _plan(self, client: Client, events: Snapshot, quarantine: Snapshot) -> Batch | None:
        log, position = EventLog(client), Position.of(events, self.namespace)
        if ids := await log.list_unmatched(position.id):
            position = self._rewind(position, ids, events, quarantine)
        reader = events.table_id
        return await plan_batch(
            log, client.archive, position, reader, entries=self._entries, size=_BATCH_BYTES
        )

    def _rewind(self, position: Position, ids: Sequence[str], *snapshots: Snapshot) -> Position:
        """Return the position up to which the lake has the entries of a recreated stream.

        If the clock of its server is behind, entries that came since have ids that are not above
        the last archived one.
        """
        days = [datetime.fromtimestamp(parse_id(id)[0] / 1000, UTC).date() for id in ids]
        known: set[str] = set()
        for each in snapshots:
            files = each.files(self.namespace, set(days))
            known.update(read_table(each.storage, each.table, files, ["id"])["id"].to_pylist())
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

    def _archive(
        self, batch: Batch, events: Snapshot, quarantine: Snapshot
    ) -> tuple[Snapshot, Snapshot]:
        """Write a batch and commit it; rejected entries first, so that none is trimmed before.

        If only the quarantine is committed, the batch is planned again, and entries up to the
        position of the quarantine aren't rejected again.
        """
        quarantined = Position.of(quarantine, self.namespace).ordinal
        storages = {EVENTS: events.storage, QUARANTINE: quarantine.storage}
        written = self._write(batch, storages, quarantined)
        read = sum(each.get("entries", 0) for each in written)
        end = replace(batch.end, lost=batch.end.lost + batch.entries - read)
        transactions = end.transactions(self.namespace)
        files = {name: [each for each in written if each.get("table") == name] for name in storages}
        try:
            if rejected := as_actions(files[QUARANTINE]):
                quarantine = quarantine.commit(rejected, transactions=transactions)
            committed = events.commit(as_actions(files[EVENTS]), transactions=transactions)
        except ConcurrentCommit:
            raise ConcurrentCommit(
                f"another archiver of {self.namespace} is at work on {self._lake.url}; this one "
                "committed nothing of its batch"
            ) from None
        lost = end.lost - Position.of(events, self.namespace).lost
        self._note(files, end, lost)
        return committed, quarantine

    def _write(self, batch: Batch, storages: dict[str, Storage], quarantined: int) -> list[File]:
        """Have the shares of a batch written as files."""
        number = len(batch.shares)
        write = partial(write_share, self._settings, storages, batch.shares, quarantined)
        spark = self._open_session() if number > self._local_shares else None
        return collect(number, write, spark)

    def _note(self, files: Mapping[str, Sequence[File]], end: Position, lost: int) -> None:
        done = self._done
        events, rejected = (
            sum(each["statistics"]["numRecords"] for each in files[name])
            for name in (EVENTS, QUARANTINE)
        )
        done.batches += 1
        done.events += events
        done.unreadable += rejected
        done.lost += lost
        aside = f", {rejected:,} entries to quarantine" if rejected else ""
        self._report(f"batch up to entry {end.ordinal:,}: {events:,} events{aside}")
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
        events = self._lake.snapshot(EVENTS)
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
        if not take_over:
            self._refuse_missing_files(events, position)
        if not state.on:
            self._report(
                f"the archive of {self.namespace} is off: nothing comes in until the shared "
                "option `archive` is `on`"
            )

    def _refuse_missing_files(self, events: Snapshot, position: Position) -> None:
        """Refuse a table of which an earlier version was restored, which keeps the position."""
        snapshots = (events, self._lake.snapshot(QUARANTINE))
        files = [file for each in snapshots for file in each.files(self.namespace)]
        if first_day(events, self.namespace) and not events.files(self.namespace):
            return
        last = max((each.greatest.get("ordinal", 0) for each in files), default=0)
        erased = sum(each.transaction(erased_name(self.namespace)) or 0 for each in snapshots)
        if position.ordinal - last > position.lost + erased:
            raise LakeError(
                f"{EVENTS} of {self._lake.url} ends at entry {last:,} of {self.namespace}, but "
                f"those up to {position.ordinal:,} were archived and trimmed: an earlier version "
                "of the table was restored. Restore the latest one; --take-over continues without "
                "the missing events"
            )

    def _sweep(self) -> None:
        """Have the ends that other clients recorded added to the stream."""
        swept = self._ask(lambda client: client.archive.sweep())
        self._done.swept += swept.found
        missing = self._reject_missing(swept.missing) if swept.missing else 0
        self._done.missing += missing
        if swept.found or missing:
            self._report(
                f"swept: {swept.found:,} jobs that other clients ended, {missing:,} without a hash"
            )

    def _reject_missing(self, jids: list[str]) -> int:
        """Put jobs that ended but have no hash into quarantine, each once; return their number."""
        quarantine = self._lake.snapshot(QUARANTINE)
        known = read_table(
            quarantine.storage,
            quarantine.table,
            quarantine.files(self.namespace),
            ["raw"],
            pc.field("id").is_null(),
        )
        raw = {json.dumps({"jid": jid}, ensure_ascii=False) for jid in jids}
        new = sorted(raw - set(known["raw"].to_pylist()))
        if not new:
            return 0
        row = {
            "id": None,
            "ordinal": None,
            "problem": "it is listed as ended, but its hash is gone: another client deleted it "
            "before it was swept",
            "namespace": self.namespace,
            "date": datetime.now(UTC).date(),
        }
        rows = pa.RecordBatch.from_pylist(
            [{**row, "raw": text} for text in new], TABLES[QUARANTINE].schema
        )
        name = f"archive:{self.namespace}:missing"
        quarantine.append(rows, {name: (quarantine.transaction(name) or 0) + len(new)})
        return len(new)

    def _is_redis_away(self) -> bool:
        try:
            self._ask(lambda client: client.archive.state())
        except (*REDIS_UNAVAILABLE, OSError):
            return True
        return False

    def _ask(self, act: Callable[[Client], Awaitable[Result]]) -> Result:
        return call(self._settings, act)
