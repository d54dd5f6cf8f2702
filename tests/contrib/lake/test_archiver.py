"""The archiver: each entry of the stream comes into the lake once; mismatches are refused."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from deltalake import DeltaTable

from aioqless import Client, NewJob
from aioqless.contrib.lake import archiver as archiver_module
from aioqless.contrib.lake import backlog
from aioqless.contrib.lake import batch as batch_module
from aioqless.contrib.lake.archiver import Archived, Archiver
from aioqless.contrib.lake.database import fetch, open_lake_database, read_named
from aioqless.contrib.lake.event_log import EventLog
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import erase, prune
from aioqless.contrib.lake.open_table import ConcurrentCommit, OpenTable
from aioqless.contrib.lake.position import count_missing
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, SNAPSHOTS, WORKER_SNAPSHOTS
from aioqless.contrib.lake.storage import LakeError
from aioqless.store import Keys
from tests.conftest import Until
from tests.contrib.lake.lakes import raw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER = """
import asyncio
from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.metrics import worker_metrics

worker_metrics.INTERVAL = 0.05

@job(klass="Hang", queue="mail")
async def hang(job: Job) -> None:
    await asyncio.Event().wait()

async def main():
    async with Client() as client:
        settings = Settings(concurrency=2, version_label="v1")
        await Worker(client, [hang], settings=settings, name="ann").run()

asyncio.run(main())
"""


class Place:
    """A namespace whose archive is on, and its lake."""

    def __init__(
        self, spark: SparkSession, url: str, client: Client, root: Path, is_parallel: bool = False
    ) -> None:
        self._open_session = (lambda: spark) if is_parallel else None
        self.client = client
        self.root = root
        self.reports: list[str] = []
        self._url = url

    @property
    def key(self) -> str:
        return Keys(self.client.internals.store.namespace)("archive").decode()

    def archiver(self, root: Path | None = None, *, entries: int = 1000) -> Archiver:
        return Archiver(
            Lake(root or self.root, create=True),
            self._url,
            self.client.namespace,
            entries=entries,
            open_session=self._open_session,
            report=self.reports.append,
        )

    async def once(
        self, root: Path | None = None, *, entries: int = 1000, take_over: bool = False
    ) -> Archived:
        return await asyncio.to_thread(
            self.archiver(root, entries=entries).once, take_over=take_over
        )

    async def end(self, *jids: str) -> None:
        """Put these jobs and cancel them, which is the shortest way to an end."""
        for jid in jids:
            await self.client.queue("q").put("K", jid=jid)
        await self.client.jobs.cancel(*jids)

    async def add(self, jid: str, **more: str) -> None:
        """Add an entry to the stream, with times of now unless others are given."""
        now = f"{time.time():.6f}"
        fields = {"v": "1", "what": "complete", "jid": jid, "klass": "K", "queue": "q"}
        times = {"put": now, "popped": now, "ended": now}
        entry: dict[Any, Any] = {**fields, **times, **more}
        await self.client.redis.xadd(self.key, entry)

    def rows(self, table: str = EVENTS, root: Path | None = None) -> list[dict[str, Any]]:
        opened = DeltaTable(Lake(root or self.root).storage.within(table).url)
        rows: list[dict[str, Any]] = opened.to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: row["ordinal"] or 0)

    def jids(self, root: Path | None = None) -> list[str]:
        """The jids of the lake in the order of their ordinals, which are unique."""
        rows = self.rows(root=root)
        assert len({row["ordinal"] for row in rows}) == len(rows)
        return [row["jid"] for row in rows]

    def versions(self) -> dict[str, int]:
        lake = Lake(self.root)
        return {name: lake.table(name).version for name in (EVENTS, QUARANTINE)}

    async def length(self) -> int:
        return (await self.client.archive.state()).length


@pytest.fixture
def is_parallel() -> bool:
    """Whether Spark makes the rows."""
    return False


@pytest.fixture
async def place(
    spark: SparkSession, redis_url: str, client: Client, tmp_path: Path, is_parallel: bool
) -> Place:
    await client.config.set("archive", "on")
    return Place(spark, redis_url, client, tmp_path / "lake", is_parallel)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


APPEND = OpenTable.append


def append_no_events(self: OpenTable, *arguments: Any) -> None:
    if self.table.name == EVENTS:
        raise OSError("no space left")
    APPEND(self, *arguments)


with_and_without_spark = pytest.mark.parametrize("is_parallel", [False, True])


@with_and_without_spark
async def test_entries_are_in_the_lake_once_and_trimmed_from_redis(place: Place) -> None:
    await place.end("a", "b", "c")
    assert await place.once(entries=2) == Archived(batches=2, events=3)
    assert await place.length() == 0
    assert place.reports == ["batch up to entry 2: 2 events", "batch up to entry 3: 1 events"]
    await place.end("d")
    await place.once()
    assert place.jids() == ["a", "b", "c", "d"]
    before = place.versions()
    assert await place.once() == Archived()
    assert place.versions() == before, "nothing is committed without entries"


@pytest.mark.parametrize("namespace", ["{shop}", "a b/é%41", "007"])
async def test_odd_paths_and_namespaces_are_archived_twice(
    namespace: str, spark: SparkSession, redis_url: str, client: Client, tmp_path: Path
) -> None:
    async with Client(redis_url, namespace=f"{namespace}{client.namespace}") as odd:
        await odd.config.set("archive", "on")
        place = Place(spark, redis_url, odd, tmp_path / "my lake" / "é {x}")
        for jid in ("a", "b"):
            await place.end(jid)
            assert (await place.once()).events == 1
            assert await place.length() == 0
        assert place.jids() == ["a", "b"]
        assert {row["namespace"] for row in place.rows()} == {odd.namespace}
        await odd.redis.delete(*await odd.redis.keys(f"*{client.namespace}*"))


@with_and_without_spark
async def test_damaged_entries_go_to_quarantine_with_the_reason(place: Place) -> None:
    await place.end("a")
    await place.client.redis.xadd(place.key, {"v": "0", "what": "complete", "jid": "old"})
    await place.client.redis.xadd(place.key, {"what": b"\xff"})
    await place.end("b")
    assert await place.once() == Archived(batches=1, events=2, unreadable=2)
    assert place.jids() == ["a", "b"]
    problems = [row["problem"] for row in place.rows(QUARANTINE)]
    assert "schema version" in problems[0] and "UTF-8" in problems[1]


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ({"ended": "99999999999"}, "ended is 5138-11-16T09:46:39+00:00, more than a day after"),
        ({"popped": "99999999999"}, "popped is 5138-11-16T09:46:39+00:00, more than a day after"),
        ({"put": "1000000000"}, "put is 2001-09-09T01:46:40+00:00, before 2010"),
        ({"runs": '[{"ended":"5","how":"retried"}]'}, "ended of a run is 1970-01-01T00:00:05"),
    ],
)
async def test_implausible_times_go_to_quarantine_with_the_reason(
    times: Mapping[str, str], reason: str, place: Place
) -> None:
    await place.add("bad", **times)
    await place.add("good", ended=f"{time.time() + 80_000:.6f}")
    assert await place.once() == Archived(batches=1, events=1, unreadable=1)
    (row,) = place.rows(QUARANTINE)
    assert reason in row["problem"] and '"jid": "bad"' in row["raw"]
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
        "swept: 1 jobs that other clients ended; 1 more were deleted before"
    )


async def test_a_batch_after_a_failed_commit_is_archived_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quarantine was committed, the events weren't; meanwhile more entries came."""
    await place.end("a")
    await place.add("bad", ended="5")
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(OpenTable, "append", append_no_events)
        await place.once()
    await place.add("bad too", ended="5")
    await place.end("b")
    assert await place.once(entries=3) == Archived(batches=2, events=2, unreadable=1)
    assert place.jids() == ["a", "b"]
    assert [row["ordinal"] for row in place.rows(QUARANTINE)] == [2, 3]


@with_and_without_spark
async def test_an_archiver_whose_namespace_another_commits_meanwhile_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, other, first = Archiver._archive, place.archiver(), True

    def overtake(self: Archiver, *arguments: Any) -> None:
        nonlocal first
        if first:
            first = False
            other.once()
        archive(self, *arguments)

    monkeypatch.setattr(Archiver, "_archive", overtake)
    await place.end("a", "b")
    with pytest.raises(ConcurrentCommit, match=r"another archiver of .* is at work"):
        await place.once()
    assert place.jids() == ["a", "b"] and await place.length() == 0
    await place.end("c")
    assert await place.once() == Archived(batches=1, events=1)
    assert place.jids() == ["a", "b", "c"]


async def test_an_older_copy_of_the_lake_is_refused_and_taken_over_with_its_losses(
    place: Place, tmp_path: Path
) -> None:
    await place.end("a")
    await place.once()
    copy = shutil.copytree(place.root, tmp_path / "copy")
    await place.end("b", "c")
    await place.once()
    await place.end("d")
    with pytest.raises(LakeError, match="it is an older copy of the lake") as refused:
        await place.once(copy)
    assert "\n" not in str(refused.value) and await place.length() == 1
    assert await place.once(copy, take_over=True) == Archived(batches=1, events=1, lost=2)
    assert "2 events were archived and trimmed, but are not in this copy" in place.reports[-1]
    assert place.jids(copy) == ["a", "d"]
    assert [row["ordinal"] for row in place.rows(root=copy)] == [1, 4]
    with pytest.raises(LakeError, match="it is an older copy of the lake"):
        await place.once()


async def test_a_second_lake_is_refused_unless_it_takes_over(place: Place, tmp_path: Path) -> None:
    await place.end("a", "b")
    await place.once()
    await place.end("c")
    with pytest.raises(LakeError, match="another lake archives"):
        await place.once(tmp_path / "other")
    assert await place.length() == 1
    assert (await place.once(tmp_path / "other", take_over=True)).events == 1
    with pytest.raises(LakeError, match="another lake archives"):
        await place.once()


async def test_entries_that_arrive_are_archived_until_the_stop(place: Place, until: Until) -> None:
    stop, done = threading.Event(), list[Archived]()
    archiver = place.archiver()
    running = threading.Thread(target=lambda: done.append(archiver.continuously(stop, every=0.1)))
    running.start()
    try:
        for jid in ("a", "b"):
            await place.end(jid)
            await until(lambda jid=jid: jid in place.jids(), patience=60)
    finally:
        stop.set()
        running.join()
    assert done[0].events == 2 and place.jids() == ["a", "b"]


async def test_a_snapshot_of_the_queues_is_taken_each_minute(
    place: Place, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = place.client.queue("mail")
    await mail.put_many([NewJob("greet") for _ in range(3)])
    await mail.pop(1, worker="ann")
    await place.client.queue("later").put("greet", delay=60)
    stop, archiver = threading.Event(), place.archiver()
    running = threading.Thread(target=lambda: archiver.continuously(stop, every=0.01))
    running.start()
    try:
        await until(lambda: bool(raw(archiver._lake, SNAPSHOTS)), patience=60)
        before = len(raw(archiver._lake, SNAPSHOTS))
        monkeypatch.setattr(backlog, "INTERVAL", 0.0)
        await until(lambda: len(raw(archiver._lake, SNAPSHOTS)) > before, patience=60)
    finally:
        stop.set()
        running.join()
    found = {row.queue: row for row in raw(archiver._lake, SNAPSHOTS)}
    assert before == 2 and set(found) == {"mail", "later"}
    assert (found["mail"].waiting, found["mail"].workers, found["later"].scheduled) == (2, 0, 1)
    assert found["mail"].lag >= 0 and found["mail"].namespace == place.client.namespace


async def test_backlog_is_visible_while_all_workers_are_dead(
    place: Place, redis_url: str, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, lake = place.client, Lake(place.root, create=True)
    environment = {"AIOQLESS_URL": redis_url, "AIOQLESS_NAMESPACE": client.namespace}
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER), env={**os.environ, **environment}
    )
    try:
        await client.queue("mail").put_many([NewJob("Hang") for _ in range(5)])

        async def reported() -> bool:
            facts = await client.metrics.workers("ann")
            return "ann" in facts and facts["ann"].busy == 2

        await until(reported, patience=60)
        backlog.store_backlog(lake, await backlog.read_backlog(client))
    finally:
        worker.kill()
        await worker.wait()
    monkeypatch.setattr(backlog, "INTERVAL", 0.0)  # none was seen since
    backlog.store_backlog(lake, await backlog.read_backlog(client))
    (row,) = raw(lake, WORKER_SNAPSHOTS)
    assert (row.worker, row.version, row.slots, row.busy, row.jobs) == ("ann", "v1", 2, 2, 2)
    assert row.queues == ["mail"] and row.pid == worker.pid and row.memory > 1 << 20
    assert row.started < row.taken
    with open_lake_database(lake) as database:
        (hour,) = fetch(database, read_named("backlog"))
        (busy,) = fetch(database, read_named("utilisation"))
        (known,) = fetch(database, read_named("workers"))
    assert (hour["most_waiting"], hour["least_workers"], hour["minutes"]) == (3, 0, 2)
    assert hour["longest_lag"] > 0
    assert (busy["workers"], busy["slots"], busy["percent"], busy["minutes"]) == (1, 2, 100, 1)
    assert known["last_seen"] == row.taken and known["started"] == row.started


async def test_losses_are_counted_and_reported_once(place: Place) -> None:
    await place.end("a")
    await place.once()
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
    """Others are cut behind the ones that are read, and one page is cut while it is."""
    monkeypatch.setattr(batch_module, "_FIRST_PAGE", 10)
    monkeypatch.setattr(batch_module, "_PAGE_ENTRIES", 10)
    read, pages = EventLog.read_page, 0

    async def cut(self: EventLog, *arguments: Any) -> Any:
        nonlocal pages
        page, pages = await read(self, *arguments), pages + 1
        if pages in (2, 3):
            left = {2: 45, 3: 15}[pages]
            await self._execute("XTRIM", self._key, "MAXLEN", left)
        return page

    await place.end(*(f"j{number:02}" for number in range(50)))
    monkeypatch.setattr(EventLog, "read_page", cut)
    assert await place.once() == Archived(batches=2, events=35, lost=15)
    found = [(row["ordinal"], row["jid"]) for row in place.rows()]
    numbers = [*range(20), *range(35, 50)]
    assert found == [(number + 1, f"j{number:02}") for number in numbers]


async def test_numbers_rise_although_redis_forgot_entries_that_are_in_the_lake(
    place: Place,
) -> None:
    await place.end("a", "b", "c")
    await place.once()
    await place.client.redis.delete(place.key)  # as if it were restored from before
    for jid in ("d", "e"):
        await place.end(jid)
        assert await place.once() == Archived(batches=1, events=1)
    assert [(row["ordinal"], row["jid"]) for row in place.rows()] == [
        (1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"),
    ]  # fmt: skip


async def test_entries_whose_ids_are_below_the_position_are_archived_after_a_new_start(
    place: Place,
) -> None:
    """The stream was recreated, by a server whose clock is behind; some of it was restored."""
    await place.end("a")
    entries: Any = await place.client.redis.xrange(place.key)
    ((id, fields),) = entries
    now = int(id.partition(b"-")[0])

    async def make_anew(start: int, *jids: str) -> None:
        await place.client.redis.delete(place.key, f"{place.key}:read")
        for number, jid in enumerate(jids):
            entry: dict[Any, Any] = {**fields, b"jid": jid.encode()}
            await place.client.redis.xadd(place.key, entry, id=f"{start + number}-0")

    await make_anew(now, "a", "b", "c")
    await place.once()
    await make_anew(now - 1, "d", "a")
    await place.client.redis.xdel(place.key, f"{now - 1}-0")
    await place.client.redis.xadd(place.key, {**fields, b"jid": b"e"}, id=f"{now}-1")
    await place.client.redis.xadd(place.key, {**fields, b"jid": b"f"}, id=f"{now + 1}-1")
    assert await place.once() == Archived(batches=1, events=2)
    assert "clock is behind: 2 entries" in place.reports[-2]
    await make_anew(now - 3_600_000, "g")
    assert await place.once() == Archived(batches=1, events=1)
    assert place.jids() == ["a", "b", "c", "e", "f", "g"] and await place.length() == 0
    assert await place.once() == Archived()


async def test_entries_of_a_restored_stream_that_are_in_the_lake_are_trimmed(place: Place) -> None:
    await place.end("a", "b")
    entries: Any = await place.client.redis.xrange(place.key)
    await place.once()
    await place.client.redis.delete(place.key)
    await place.client.redis.xadd(place.key, entries[0][1], id=entries[0][0])
    assert await place.once() == Archived() and await place.length() == 0
    await place.end("c")
    assert (await place.once()).events == 1 and place.jids() == ["a", "b", "c"]


async def test_an_earlier_version_of_the_events_is_refused_although_it_has_the_position(
    place: Place,
) -> None:
    for jid in ("a", "b", "c"):
        await place.end(jid)
        await place.once()
    await place.add("bad", ended="5")
    await place.once()
    table = DeltaTable(Lake(place.root).storage.within(EVENTS).url)
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
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.end("a", "b")
    await place.add("bad", ended="5")
    await place.once()
    lake = Lake(place.root)
    erase(lake, ["a"])
    await place.end("c")
    await place.once()
    prune(lake, datetime.now(UTC).date() + timedelta(days=1))
    await place.end("d")
    assert await place.once() == Archived(batches=1, events=1) and place.jids() == ["d"]


async def test_quarantine_that_is_ahead_of_the_events_is_no_loss(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.add("bad", ended="5")
    await place.once()
    await place.add("worse", ended="5")
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(OpenTable, "append", append_no_events)
        await place.once()
    lake = Lake(place.root)
    events, quarantine = lake.table(EVENTS), lake.table(QUARANTINE)
    quarantine.optimize()
    assert count_missing(events, quarantine, place.client.namespace) == 0


async def test_change_of_metadata_meanwhile_is_no_other_archiver(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, first = Archiver._archive, True

    def change_metadata(self: Archiver, *arguments: Any) -> None:
        nonlocal first
        if first:
            first = False
            DeltaTable(self._lake.table(EVENTS).storage.url).alter.set_table_description("ends")
        archive(self, *arguments)

    await place.once()
    monkeypatch.setattr(Archiver, "_archive", change_metadata)
    await place.end("a")
    await place.add("worse", ended="5")
    assert await place.once() == Archived(1, 1, unreadable=1) and place.jids() == ["a"]


async def test_a_file_that_a_power_cut_took_is_refused_and_nothing_is_trimmed(
    place: Place,
) -> None:
    await place.end("a")
    await place.once()
    await place.end("b")
    await place.once()
    table = Lake(place.root).table(EVENTS)
    for path in table._list_files_of(1, "add"):
        os.truncate(Path(table.storage.url, path), 0)
    await place.end("c")
    with pytest.raises(LakeError, match=r"power cut\. Restore the lake"):
        await place.once()
    assert await place.length() == 1
    assert await place.once(take_over=True) == Archived(batches=1, events=1, lost=1)
    assert place.jids() == ["b", "c"]


@pytest.mark.parametrize("commits", [1, 10])
async def test_batch_that_a_power_cut_took_is_archived_again_when_its_commit_is_deleted(
    place: Place, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """The power went out after the commit, before the stream was trimmed."""
    for number in range(commits):
        await place.end(f"j{number}")
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Archiver, "_note", interrupt if number == commits - 1 else lambda *_: 0)
            await place.once()
    table = Lake(place.root).table(EVENTS)
    (path,) = table._list_files_of(table.version, "add")
    os.truncate(Path(table.storage.url, path), 0)
    with pytest.raises(LakeError, match=r"power cut\. Delete") as refused:
        await place.once()
    for name in re.findall(r"_delta_log/[\w.]+", str(refused.value)):
        await asyncio.to_thread(Path(table.storage.url, name).unlink)
    assert (await place.once()).events == 1
    assert place.jids() == [f"j{number}" for number in range(commits)]


async def test_files_that_an_erasure_deletes_meanwhile_are_not_damaged(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.end("a", "b")
    await place.once()
    find = OpenTable._find_damaged_files

    def erase_and_find(self: OpenTable) -> list[str]:
        erase(Lake(place.root), ["a"])
        return find(self)

    monkeypatch.setattr(OpenTable, "_find_damaged_files", erase_and_find)
    await place.end("c")
    assert await place.once() == Archived(batches=1, events=1)


async def test_take_over_forgets_no_events_of_another_namespace_that_redis_still_has(
    place: Place, redis_url: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.end("a")
    await place.once()
    async with Client(redis_url, namespace=f"{place.client.namespace}2") as other:
        await other.config.set("archive", "on")
        second = Place(spark, redis_url, other, place.root)
        await second.end("b")
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Archiver, "_note", interrupt)
            await second.once()
        table = Lake(place.root).table(EVENTS)
        for path in table._list_files_of(table.version, "add"):
            os.truncate(Path(table.storage.url, path), 0)
        with pytest.raises(LakeError, match=r"power cut\. Delete"):
            await place.once(take_over=True)


async def test_pruned_events_that_are_there_again_hide_no_loss(place: Place) -> None:
    await place.end("a", "b")
    await place.once()
    table = DeltaTable(Lake(place.root).storage.within(EVENTS).url)
    prune(Lake(place.root), datetime.now(UTC).date() + timedelta(days=1), layers=["bronze"])
    await place.end("c", "d")
    await place.once()
    table.update_incremental()
    table.restore(1)
    with pytest.raises(LakeError, match="lacks 2 of the 4 entries"):
        await place.once()


async def test_entry_that_was_cut_after_it_was_rejected_is_not_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.end("a")
    await place.once()
    await place.add("bad", ended="5")
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(OpenTable, "append", append_no_events)
        await place.once()
    await place.client.redis.xtrim(place.key, maxlen=0)
    assert await place.once() == Archived(), "nothing is left to read"
    await place.end("b")
    assert await place.once() == Archived(batches=1, events=1)
    lake = Lake(place.root)
    events, quarantine = lake.table(EVENTS), lake.table(QUARANTINE)
    assert count_missing(events, quarantine, place.client.namespace) == 0


async def test_batches_are_bounded_by_entries_and_bytes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_module, "_FIRST_PAGE", 5)
    monkeypatch.setattr(batch_module, "_PAGE_BYTES", 50_000)
    monkeypatch.setattr(archiver_module, "_BATCH_BYTES", 300_000)
    for number in range(150):
        await place.add(f"j{number:03}", data="x" * 10_000)
    done = await place.once(entries=20)
    assert (done.events, place.jids()) == (150, [f"j{number:03}" for number in range(150)])
    assert done.batches == 8


async def test_a_stream_that_is_off_is_reported(place: Place) -> None:
    await place.client.config.unset("archive")
    for _ in range(2):
        assert await place.once() == Archived()
    assert "is off" in place.reports[0]
