"""The archiver: what ended comes into the lake, once; what doesn't belong together is refused in
plain words."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

import pyarrow.parquet as pq

from aioqless import Client
from aioqless.client.archive import Archive
from aioqless.contrib.lake.archiver import Archived, Archiver
from aioqless.contrib.lake.lake import Lake, LakeError
from aioqless.errors import AioqlessError
from tests.conftest import Until
from tests.contrib.lake.proof import digest, raw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Place:
    """A namespace whose archive is on, and its lake."""

    def __init__(self, spark: SparkSession, url: str, client: Client, root: Path) -> None:
        self.client = client
        self.root = root
        self.told: list[str] = []
        self._spark = spark
        self._url = url

    def archiver(self, root: Path | None = None, *, entries: int = 1000) -> Archiver:
        lake = Lake(root or self.root, create=True)
        return Archiver(
            self._spark,
            lake,
            self._url,
            self.client.namespace,
            entries=entries,
            tell=self.told.append,
        )

    async def once(
        self, root: Path | None = None, *, entries: int = 1000, take_over: bool = False
    ) -> Archived:
        return await asyncio.to_thread(
            self.archiver(root, entries=entries).once, take_over=take_over
        )

    async def end(self, *jids: str) -> None:
        """These jobs come and are cancelled, which is the shortest way to an end."""
        for jid in jids:
            await self.client.queue("q").put("K", jid=jid)
        await self.client.jobs.cancel(*jids)

    def jids(self) -> list[Any]:
        return (
            raw(self.root)["jid"].to_pylist()
            if any((self.root / "bronze").rglob("*.parquet"))
            else []
        )

    async def length(self) -> int:
        return (await Archive(self.client.store).state()).length


@pytest.fixture
async def place(spark: SparkSession, redis_url: str, client: Client, tmp_path: Path) -> Place:
    await client.config.set("archive", "on")
    return Place(spark, redis_url, client, tmp_path / "lake")


async def test_what_ended_is_in_the_lake_in_order_and_gone_from_redis(place: Place) -> None:
    await place.end("a", "b", "c")
    assert await place.once(entries=2) == Archived(batches=2, events=3)
    assert place.jids() == ["a", "b", "c"]
    assert await place.length() == 0
    assert place.told == ["batch 0: 2 events", "batch 1: 1 events"]


async def test_it_goes_on_where_it_stopped_and_doing_it_again_changes_nothing(place: Place) -> None:
    await place.end("a", "b")
    await place.once()
    await place.end("c")
    await place.once()
    assert place.jids() == ["a", "b", "c"]
    before = digest(place.root)
    assert await place.once() == Archived()
    assert digest(place.root) == before


async def test_damaged_entries_are_put_aside_with_the_reason(place: Place) -> None:
    await place.end("a")
    key = f"{place.client.namespace}:x:archive"
    await place.client.redis.xadd(key, {"v": "0", "what": "complete", "jid": "old"})
    await place.client.redis.xadd(key, {"what": b"\xff"})
    await place.end("b")
    assert await place.once() == Archived(batches=1, events=2, unreadable=2)
    assert place.jids() == ["a", "b"]
    (file,) = (place.root / "quarantine").rglob("*.parquet")
    problems = pq.read_table(file, partitioning=None)["problem"].to_pylist()
    assert "schema version" in problems[0] and "UTF-8" in problems[1]


async def test_what_peers_ended_is_swept_in_and_what_is_gone_is_named(place: Place) -> None:
    await place.client.config.set("archive", "off")
    await place.client.queue("q").put("K", jid="a")
    (job,) = await place.client.queue("q").pop()
    await job.complete()
    await place.client.redis.zadd(f"{place.client.namespace}:completed", {"ghost": 1})
    await place.client.config.set("archive", "on")
    assert await place.once() == Archived(batches=1, events=1, missing=1, swept=1)
    assert await place.once() == Archived()
    assert place.jids() == ["a"]


async def test_a_lost_checkpoint_beside_a_kept_bronze_is_refused(place: Place) -> None:
    await place.end("a")
    await place.once()
    shutil.rmtree(place.root / "checkpoint")
    before = digest(place.root)
    with pytest.raises(LakeError, match=r"up to batch 0, but their checkpoint .* is gone"):
        await place.once()
    assert digest(place.root) == before


async def test_a_lost_bronze_beside_a_kept_checkpoint_is_refused(place: Place) -> None:
    await place.end("a")
    await place.once()
    shutil.rmtree(place.root / "bronze")
    with pytest.raises(LakeError, match="has none"):
        await place.once()


async def test_a_second_lake_is_refused_unless_it_takes_over(place: Place, tmp_path: Path) -> None:
    await place.end("a", "b")
    await place.once()
    await place.end("c")
    with pytest.raises(AioqlessError, match="another lake archives"):
        await place.once(tmp_path / "other")
    assert await place.length() == 1
    assert (await place.once(tmp_path / "other", take_over=True)).events == 1
    with pytest.raises(AioqlessError, match="another lake archives"):
        await place.once()


async def test_two_archivers_of_one_lake_are_not_at_work_at_once(
    place: Place, until: Until
) -> None:
    stop = threading.Event()
    first = threading.Thread(target=lambda: place.archiver().continuously(stop, every=0.1))
    first.start()
    try:
        await place.end("a")
        await until(lambda: place.told, patience=60)
        with pytest.raises(LakeError, match="is at work on"):
            await place.once()
    finally:
        stop.set()
        first.join()


async def test_what_comes_while_it_runs_is_archived_until_it_is_told_to_stop(
    place: Place, until: Until
) -> None:
    stop, done = threading.Event(), list[Archived]()
    running = threading.Thread(
        target=lambda: done.append(place.archiver().continuously(stop, every=0.1))
    )
    running.start()
    try:
        for jid in ("a", "b"):
            await place.end(jid)
            await until(lambda jid=jid: jid in place.jids(), patience=60)
    finally:
        stop.set()
        running.join()
    assert done[0].events == 2 and sorted(place.jids()) == ["a", "b"]


async def test_what_was_cut_unread_is_counted_and_told(place: Place) -> None:
    await place.end("a")
    await place.once()
    await place.client.config.set("archive-when-full", "count")
    await place.client.config.set("archive-length", 10)
    await place.end(*(f"j{number}" for number in range(250)))
    cut = 250 - await place.length()
    assert cut > 0
    done = await place.once()
    assert (done.lost, done.events) == (cut, 250 - cut)
    assert any(f"{cut:,} events were cut before they were read" in line for line in place.told)


async def test_a_machine_too_busy_to_start_a_query_is_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, starts = Archiver._start, 0

    def slow(self: Archiver, *arguments: Any, **trigger: Any) -> Any:
        nonlocal starts
        if (starts := starts + 1) <= 2:
            raise RuntimeError(
                "org.apache.spark.SparkException: Python worker failed to connect back."
            )
        return start(self, *arguments, **trigger)

    await place.end("a")
    monkeypatch.setattr(Archiver, "_start", slow)
    assert await place.once() == Archived(batches=1, events=1)
    assert [line for line in place.told if "too busy" in line] == place.told[:2]


async def test_it_says_that_the_archive_is_off(place: Place) -> None:
    await place.client.config.unset("archive")
    for _ in range(2):
        assert await place.once() == Archived()
    assert "is off" in place.told[0]
