"""The archiver: each entry of the stream comes into the lake once; mismatches are refused."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import aioqless
from aioqless import Client, Settings, Worker
from aioqless.contrib.lake import archiver as archiver_module
from aioqless.contrib.lake import backlog, event_log
from aioqless.contrib.lake.archiver import Archived, Archiver
from aioqless.contrib.lake.event_log import EventLog
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import compact, erase, prune
from aioqless.contrib.lake.open_table import ConcurrentCommit, OpenTable
from aioqless.contrib.lake.position import count_missing
from aioqless.contrib.lake.read.database import fetch, open_lake_database, read_named
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, SNAPSHOTS, WORKER_SNAPSHOTS
from aioqless.contrib.lake.storage import LakeError
from aioqless.store import Keys
from aioqless.worker.parts import presence
from tests.conftest import Until
from tests.contrib.lake.lakes import Row, before, open_session, raw


class Place:
    """A namespace whose archive is on, and its lake."""

    def __init__(self, client: Client, root: Path) -> None:
        self.client = client
        self.root = root
        self.reports: list[str] = []

    @property
    def key(self) -> str:
        return Keys(self.client.internals.store.namespace)("archive").decode()

    def archiver(self, entries: int = 1000) -> Archiver:
        return Archiver(
            Lake(self.root, create=True),
            open_session,
            str(self.client.url),
            self.client.namespace,
            entries=entries,
            report=self.reports.append,
        )

    async def once(self, *, entries: int = 1000, take_over: bool = False) -> Archived:
        return await asyncio.to_thread(self.archiver(entries).once, take_over=take_over)

    async def end(self, *jids: str) -> None:
        """Put these jobs and cancel them, which is the shortest way to an end."""
        for jid in jids:
            await self.client.queue("q").put("K", jid=jid)
        await self.client.jobs.cancel(*jids)

    async def archive(self, *jids: str) -> None:
        """Archive the ends of these jobs."""
        await self.end(*jids)
        await self.once()

    async def add(self, jid: str, **more: str) -> None:
        """Add an entry to the stream, with times of now unless others are given."""
        now = f"{time.time():.6f}"
        fields = {"v": "1", "what": "complete", "jid": jid, "klass": "K", "queue": "q"}
        times = {"put": now, "popped": now, "ended": now}
        entry: dict[Any, Any] = {**fields, **times, **more}
        await self.client.redis.xadd(self.key, entry)

    def rows(self, table: str = EVENTS) -> list[Row]:
        return sorted(raw(Lake(self.root), table), key=lambda row: row["ordinal"])

    def jids(self) -> list[str]:
        """The jids of the lake in the order of their ordinals, which are unique."""
        rows = self.rows()
        assert len({row["ordinal"] for row in rows}) == len(rows)
        return [row["jid"] for row in rows]

    def numbered(self) -> list[tuple[int, str]]:
        return [(row["ordinal"], row["jid"]) for row in self.rows()]

    def table(self, name: str = EVENTS) -> OpenTable:
        return Lake(self.root).table(name)

    def count_missing(self) -> int:
        return count_missing(self.table(), self.table(QUARANTINE), self.client.namespace)

    def truncate(self, version: int | None = None) -> None:
        """Cut off the files that a commit added, as a power cut does; the last one by default."""
        table = self.table()
        for path in table._list_files_of(table.version if version is None else version, "add"):
            os.truncate(Path(table.storage.url, path), 0)

    async def length(self) -> int:
        return (await self.client.archive.state()).length


@pytest.fixture
async def place(client: Client, tmp_path: Path) -> Place:
    await client.config.set("archive", "on")
    return Place(client, tmp_path / "lake")


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


async def fail_to_commit_events(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archive until the rejected entries of a batch are committed, and its events aren't."""
    commit = OpenTable.commit

    def commit_no_events(self: OpenTable, *arguments: Any, **options: Any) -> None:
        if self.table.name == EVENTS:
            raise OSError("no space left")
        commit(self, *arguments, **options)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(OpenTable, "commit", commit_no_events)
        await place.once()


async def archive_without_trimming(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archive until a batch is committed; the process ends before the stream is trimmed."""
    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(Archiver, "_note", interrupt)
        await place.once()


async def test_entries_are_in_the_lake_once_and_trimmed_from_redis(place: Place) -> None:
    await place.end("a", "b", "c")
    assert await place.once(entries=2) == Archived(batches=2, events=3)
    assert await place.length() == 0
    assert place.reports == ["batch up to entry 2: 2 events", "batch up to entry 3: 1 events"]
    await place.end("d")
    await place.once()
    assert place.jids() == ["a", "b", "c", "d"]
    version = place.table().version
    assert await place.once() == Archived()
    assert place.table().version == version, "nothing is committed without entries"


async def test_damaged_entries_go_to_quarantine_with_the_reason(place: Place) -> None:
    await place.end("a")
    await place.client.redis.xadd(place.key, {"v": "0", "what": "complete", "jid": "old"})
    await place.client.redis.xadd(place.key, {"v": "7", "jid": b"\xff"})
    await place.end("b")
    assert await place.once() == Archived(batches=1, events=2, unreadable=2)
    assert place.jids() == ["a", "b"]
    old, bad = place.rows(QUARANTINE)
    assert "schema version" in old.problem and "UTF-8" in bad.problem
    assert bad.raw == '{"v": "7", "jid": "\ufffd"}' and bad.date == place.rows()[0].date


IMPLAUSIBLE: list[tuple[dict[str, str], str]] = [
    ({"ended": "99999999999"}, "ended is 5138-11-16T09:46:39+00:00, more than a day after"),
    ({"popped": "99999999999"}, "popped is 5138-11-16T09:46:39+00:00, more than a day after"),
    ({"put": "1000000000"}, "put is 2001-09-09T01:46:40+00:00, before 2010"),
    ({"runs": '[{"ended":"5","how":"retried"}]'}, "ended of a run is 1970-01-01T00:00:05"),
]


async def test_implausible_times_go_to_quarantine_with_the_reason(place: Place) -> None:
    for number, (times, _) in enumerate(IMPLAUSIBLE):
        await place.add(f"bad{number}", **times)
    await place.add("good", ended=f"{time.time() + 80_000:.6f}")
    assert await place.once() == Archived(batches=1, events=1, unreadable=len(IMPLAUSIBLE))
    for number, (row, (_, reason)) in enumerate(
        zip(place.rows(QUARANTINE), IMPLAUSIBLE, strict=True)
    ):
        assert reason in row["problem"] and f'"jid": "bad{number}"' in row["raw"]
    assert place.jids() == ["good"]


async def test_ends_by_other_clients_are_swept(place: Place) -> None:
    await place.client.config.set("archive", "off")
    await place.client.queue("q").put("K", jid="a")
    (job,) = await place.client.queue("q").pop()
    await job.complete()
    await place.client.redis.zadd(f"{place.client.namespace}:completed", {"ghost": 1})
    await place.client.config.set("archive", "on")
    assert await place.once() == Archived(batches=1, events=1, swept=1)
    assert await place.once() == Archived()
    assert place.jids() == ["a"]
    assert place.reports[0] == (
        "swept: 1 jobs that other clients ended, or that ended while the archive was off; "
        "1 more were deleted before"
    )


async def test_a_batch_after_a_failed_commit_is_archived_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quarantine was committed, the events weren't; meanwhile more entries came."""
    await place.add("bad before", ended="5")
    await place.once()
    await place.end("a")
    await place.add("bad", ended="5")
    await fail_to_commit_events(place, monkeypatch)
    place.table(QUARANTINE).optimize()
    assert place.count_missing() == 0
    await place.add("bad too", ended="5")
    await place.end("b")
    assert await place.once(entries=3) == Archived(batches=2, events=2, unreadable=1)
    assert place.jids() == ["a", "b"]
    assert [row["ordinal"] for row in place.rows(QUARANTINE)] == [1, 3, 4]


async def test_entry_that_was_cut_after_it_was_rejected_is_not_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.archive("a")
    await place.add("bad", ended="5")
    await fail_to_commit_events(place, monkeypatch)
    await place.client.redis.xtrim(place.key, maxlen=0)
    assert await place.once() == Archived(), "nothing is left to read"
    await place.end("b")
    assert await place.once() == Archived(batches=1, events=1)
    assert place.count_missing() == 0


async def test_an_archiver_whose_namespace_another_commits_meanwhile_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, Archiver, "_archive", place.archiver().once)
    await place.end("a", "b")
    with pytest.raises(ConcurrentCommit, match=r"another archiver of .* is at work"):
        await place.once()
    assert place.jids() == ["a", "b"] and await place.length() == 0
    await place.end("c")
    assert await place.once() == Archived(batches=1, events=1)
    assert place.jids() == ["a", "b", "c"]


async def test_change_of_metadata_meanwhile_is_no_other_archiver(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.once()
    change = place.table().delta.alter.set_table_description
    before(monkeypatch, Archiver, "_archive", lambda: change("ends"))
    await place.end("a")
    await place.add("worse", ended="5")
    assert await place.once() == Archived(1, 1, unreadable=1) and place.jids() == ["a"]


async def test_an_older_copy_of_the_lake_is_refused_and_taken_over_with_its_losses(
    place: Place, tmp_path: Path
) -> None:
    await place.archive("a")
    copy = Place(place.client, shutil.copytree(place.root, tmp_path / "copy"))
    await place.archive("b", "c")
    await place.end("d")
    with pytest.raises(LakeError, match="it is an older copy of the lake") as refused:
        await copy.once()
    assert "\n" not in str(refused.value) and await place.length() == 1
    assert await copy.once(take_over=True) == Archived(batches=1, events=1, lost=2)
    assert "2 events were archived and trimmed, but are not in this copy" in copy.reports[-1]
    assert copy.numbered() == [(1, "a"), (4, "d")]
    with pytest.raises(LakeError, match="it is an older copy of the lake"):
        await place.once()


async def test_a_second_lake_is_refused_unless_it_takes_over(place: Place, tmp_path: Path) -> None:
    await place.archive("a", "b")
    await place.end("c")
    other = Place(place.client, tmp_path / "other")
    with pytest.raises(LakeError, match="another lake archives"):
        await other.once()
    assert await place.length() == 1
    assert (await other.once(take_over=True)).events == 1
    with pytest.raises(LakeError, match="another lake archives"):
        await place.once()


@contextmanager
def archiving(archiver: Archiver) -> Iterator[list[Archived]]:
    """Archive continuously in a thread; yields a list that has the result afterwards."""
    stop, done = threading.Event(), list[Archived]()
    running = threading.Thread(target=lambda: done.append(archiver.continuously(stop, every=0.01)))
    running.start()
    try:
        yield done
    finally:
        stop.set()
        running.join()


async def test_entries_that_arrive_are_archived_until_the_stop(place: Place, until: Until) -> None:
    with archiving(place.archiver()) as done:
        for jid in ("a", "b"):
            await place.end(jid)
            await until(lambda jid=jid: jid in place.jids(), patience=60)
    assert done[0].events == 2 and place.jids() == ["a", "b"]


async def test_a_snapshot_of_queues_and_workers_is_taken_each_minute(
    place: Place, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of five jobs runs two; then it stops."""
    client, archiver = place.client, place.archiver()
    lake = Lake(place.root)

    @aioqless.job(klass="Hang", queue="mail")
    async def hang(job: aioqless.Job) -> None:
        await asyncio.Event().wait()

    async def is_reported() -> bool:
        facts = await client.metrics.workers("ann")
        return "ann" in facts and facts["ann"].busy == 2

    monkeypatch.setattr(presence, "INTERVAL", 0.05)
    await client.queue("mail").put_many([aioqless.NewJob("Hang") for _ in range(5)])
    await client.queue("later").put("greet", delay=60)
    settings = Settings(concurrency=2, version_label="v1")
    working = asyncio.create_task(Worker(client, [hang], settings=settings, name="ann").run())
    await until(is_reported, patience=60)
    with archiving(archiver):
        await until(lambda: raw(lake, WORKER_SNAPSHOTS), patience=60)
        first = {row.queue: row for row in raw(lake, SNAPSHOTS)}
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        monkeypatch.setattr(backlog, "INTERVAL", 0.0)
        await until(lambda: len(raw(lake, SNAPSHOTS)) > 2, patience=60)
    assert set(first) == {"mail", "later"} and first["mail"].namespace == client.namespace
    assert (first["mail"].waiting, first["mail"].workers, first["later"].scheduled) == (3, 1, 1)
    (row,) = raw(lake, WORKER_SNAPSHOTS)
    assert (row.worker, row.version, row.slots, row.busy, row.jobs) == ("ann", "v1", 2, 2, 2)
    assert row.queues == ["mail"] and row.pid == os.getpid() and row.memory > 1 << 20
    assert row.started < row.taken
    with open_lake_database(lake) as database:
        hour = next(each for each in fetch(database, read_named("backlog")) if each["most_waiting"])
        (busy,) = fetch(database, read_named("utilisation"))
        (known,) = fetch(database, read_named("workers"))
    assert (hour["queue"], hour["most_waiting"], hour["least_workers"]) == ("mail", 5, 0)
    assert hour["longest_lag"] > 0
    assert (busy["workers"], busy["slots"], busy["percent"], busy["minutes"]) == (1, 2, 100, 1)
    assert known["last_seen"] == row.taken and known["started"] == row.started


async def test_losses_are_counted_and_reported_once(place: Place) -> None:
    await place.archive("a")
    await place.client.config.set("archive-when-full", "count")
    await place.client.config.set("archive-length", 10)
    await place.end(*(f"j{number}" for number in range(250)))
    cut = 250 - await place.length()
    assert cut > 0
    done = await place.once()
    assert (done.lost, done.events) == (cut, 250 - cut)
    assert any(f"{cut:,} events were cut before they were read" in line for line in place.reports)
    assert sorted(row["ordinal"] for row in place.rows()) == [1, *range(cut + 2, 252)]
    place.reports.clear()
    await place.end("z")
    assert await place.once() == Archived(batches=1, events=1)
    assert place.reports == ["batch up to entry 252: 1 events"]


async def test_entries_cut_before_they_are_read_count_as_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once while a batch is planned, and once before tasks read it."""
    monkeypatch.setattr(event_log, "_FIRST_PAGE", 10)
    monkeypatch.setattr(event_log, "PAGE", 10)
    read, lengths = EventLog.read_page, iter([None, 45, *[None] * 5, 15])

    async def cut(self: EventLog, *arguments: Any) -> Any:
        page = await read(self, *arguments)
        if left := next(lengths, None):
            await self._execute("XTRIM", self._key, "MAXLEN", left)
        return page

    await place.end(*(f"j{number:02}" for number in range(50)))
    monkeypatch.setattr(EventLog, "read_page", cut)
    assert await place.once() == Archived(batches=1, events=15, lost=35)
    numbers = range(35, 50)
    assert place.numbered() == [(number + 1, f"j{number:02}") for number in numbers]


async def test_numbers_rise_although_redis_was_restored_from_before_the_last_entries(
    place: Place,
) -> None:
    await place.end("a", "b", "c")
    entries: Any = await place.client.redis.xrange(place.key)
    await place.once()
    await place.client.redis.delete(place.key)
    await place.client.redis.xadd(place.key, entries[0][1], id=entries[0][0])
    assert await place.once() == Archived() and await place.length() == 0
    for jid in ("d", "e"):
        await place.end(jid)
        assert await place.once() == Archived(batches=1, events=1)
    await place.end("lost", "g")
    await place.client.redis.xtrim(place.key, maxlen=1, approximate=False)
    assert await place.once() == Archived(batches=1, events=1, lost=1)
    assert place.numbered() == [*enumerate("abcde", 1), (7, "g")]
    assert not any("clock" in line for line in place.reports)


async def test_entries_whose_ids_are_below_the_position_are_archived_after_a_new_start(
    place: Place,
) -> None:
    """The stream was recreated, by a server whose clock is behind; some of it was restored."""
    await place.end("a")
    entries: Any = await place.client.redis.xrange(place.key)
    ((id, fields),) = entries
    now = int(id.partition(b"-")[0])

    async def add(jid: str, id: str) -> None:
        await place.client.redis.xadd(place.key, {**fields, b"jid": jid.encode()}, id=id)

    async def make_anew(start: int, *jids: str) -> None:
        await place.client.redis.delete(place.key, f"{place.key}:read")
        for number, jid in enumerate(jids):
            await add(jid, f"{start + number}-0")

    await make_anew(now, "a", "b", "c")
    await place.once()
    await make_anew(now - 1, "d", "a")
    await place.client.redis.xdel(place.key, f"{now - 1}-0")
    await add("e", f"{now}-1")
    await add("f", f"{now + 1}-1")
    assert await place.once() == Archived(batches=1, events=2)
    assert "clock is behind: 2 entries" in place.reports[-2]
    await make_anew(now - 3_600_000, "g")
    assert await place.once() == Archived(batches=1, events=1)
    assert place.jids() == ["a", "b", "c", "e", "f", "g"] and await place.length() == 0
    assert await place.once() == Archived()


async def test_an_earlier_version_of_the_events_is_refused_although_it_has_the_position(
    place: Place,
) -> None:
    for jid in ("a", "b", "c"):
        await place.archive(jid)
    await place.add("bad", ended="5")
    await place.once()
    table = place.table().delta
    table.restore(table.version() - 2)
    await place.end("d")
    with pytest.raises(LakeError, match=r"lacks 1 of the 4 entries .* version .* was restored"):
        await place.once()
    assert await place.length() == 1
    assert await place.once(take_over=True) == Archived(batches=1, events=1, lost=1)
    assert place.jids() == ["a", "b", "d"]
    await place.end("e")
    assert (await place.once()).events == 1


async def test_archiving_goes_on_after_entries_were_rejected_erased_and_pruned(
    place: Place,
) -> None:
    await place.add("bad", ended="5")
    await place.archive("a", "b")
    lake = Lake(place.root)
    erase(lake, open_session, ["a"])
    await place.archive("c")
    prune(lake, datetime.now(UTC).date() + timedelta(days=1))
    await place.end("d")
    assert await place.once() == Archived(batches=1, events=1) and place.jids() == ["d"]


async def test_pruned_events_that_are_there_again_hide_no_loss(place: Place) -> None:
    await place.archive("a", "b")
    table = place.table().delta
    prune(Lake(place.root), datetime.now(UTC).date() + timedelta(days=1), layers=["bronze"])
    await place.archive("c", "d")
    table.update_incremental()
    table.restore(1)
    with pytest.raises(LakeError, match="lacks 2 of the 4 entries"):
        await place.once()


@pytest.mark.parametrize(("compacted", "left"), [(False, ["b"]), (True, [])])
async def test_a_file_that_a_power_cut_took_is_refused_and_nothing_is_trimmed(
    place: Place, compacted: bool, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another archiver takes over at the same time."""
    await place.archive("a")
    await place.archive("b")
    if compacted:
        compact(Lake(place.root))
    place.truncate(None if compacted else 1)
    await place.end("c")
    with pytest.raises(LakeError, match=r"power cut\. Restore the lake"):
        await place.once()
    assert await place.length() == 1
    other = place.table()
    before(monkeypatch, DeltaTable, "repair", lambda: other.check_files(forget=True))
    lost = 2 - len(left)
    assert await place.once(take_over=True) == Archived(batches=1, events=1, lost=lost)
    assert place.jids() == [*left, "c"]


@pytest.mark.parametrize("commits", [1, 10])
async def test_batch_that_a_power_cut_took_is_archived_again_when_its_commit_is_deleted(
    place: Place, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """The power went out after the commit, before the stream was trimmed.

    The tenth commit is followed by a checkpoint.
    """
    if archived := ["a"] * (commits > 1):
        await place.archive(*archived)
    for number in range(commits - 2):
        place.table().set_property("aioqless.tests", str(number))
    await place.end("b")
    await archive_without_trimming(place, monkeypatch)
    place.truncate()
    with pytest.raises(LakeError, match=r"power cut\. Delete") as refused:
        await place.once()
    for name in re.findall(r"_delta_log/[\w.]+", str(refused.value)):
        await asyncio.to_thread(Path(place.root, EVENTS, name).unlink)
    assert (await place.once()).events == 1
    assert place.jids() == [*archived, "b"]


async def test_take_over_forgets_no_events_of_another_namespace_that_redis_still_has(
    place: Place, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.archive("a")
    async with Client(redis_url, namespace=f"{place.client.namespace}2") as other:
        await other.config.set("archive", "on")
        second = Place(other, place.root)
        await second.end("b")
        await archive_without_trimming(second, monkeypatch)
        place.truncate()
        with pytest.raises(LakeError, match=r"power cut\. Delete"):
            await place.once(take_over=True)


async def test_files_that_an_erasure_deletes_meanwhile_are_not_damaged(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.archive("a", "b")
    await place.end("c")
    lake = Lake(place.root)
    before(monkeypatch, OpenTable, "_find_damaged_files", lambda: erase(lake, open_session, ["a"]))
    assert await place.once() == Archived(batches=1, events=1)


async def test_batches_are_bounded_by_entries_and_bytes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_FIRST_PAGE", 5)
    monkeypatch.setattr(event_log, "_PAGE_BYTES", 50_000)
    monkeypatch.setattr(archiver_module, "_BATCH_BYTES", 60_000)
    small, large = ([f"{size}{number:02}" for number in range(12)] for size in ("s", "x"))
    for jid in small:
        await place.add(jid)
    assert await place.once(entries=10) == Archived(batches=2, events=12)
    for jid in large:
        await place.add(jid, data="x" * 10_000)
    assert await place.once(entries=1000) == Archived(batches=2, events=12)
    assert place.jids() == [*small, *large]
    ends = [line.partition(":")[0].removeprefix("batch up to entry ") for line in place.reports]
    assert ends == ["10", "12", "21", "24"]


async def test_a_stream_that_is_off_is_reported(place: Place) -> None:
    await place.client.config.unset("archive")
    for _ in range(2):
        assert await place.once() == Archived()
    assert "is off" in place.reports[0]
