"""The archiver: takes the archive's stream to the lake, each event once, and trims what is safely
there."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.client.archive import Archive, ArchiveState, SweepResult
from aioqless.contrib.lake.bronze import Bronze, written
from aioqless.contrib.lake.lake import Lake, LakeError
from aioqless.contrib.lake.transaction import changing
from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Answer = TypeVar("Answer")

SWEEP_EVERY = 60.0
_PATIENCE = 3  # failures in a row, with Redis there, of which none came any further
_LONGEST_PAUSE = 30.0
# Spark gives a stream's Python process ten seconds to start in, and no setting for that
_TOO_SLOW = "failed to connect back"


@dataclass
class Archived:
    """What came of it so far."""

    batches: int = 0
    events: int = 0
    unreadable: int = 0  # entries that went to quarantine
    missing: int = 0  # ended jobs without a hash, which went there, too
    swept: int = 0  # ends of jobs that other clients made
    lost: int = 0  # entries that were cut before they were read


class Archiver:
    """Takes the archive of a namespace to a lake.

    `entries` is the most that a batch has; `tell` hears, line by line, how it goes. What it has
    done when it is killed is there, what it was at is done again. Raises LakeError when the lake
    and the checkpoint don't belong together, or another archiver is at work here."""

    def __init__(
        self, spark: SparkSession, lake: Lake, url: str | None = None, namespace: str = "ql", *, entries: int = 50_000,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._lake = lake
        self._url = url
        self._namespace = namespace
        self._entries = entries
        self._tell = tell
        self._checkpoint = lake.checkpoint(namespace)
        self._done = Archived()

    def once(self, stop: threading.Event | None = None, *, take_over: bool = False) -> Archived:
        """All that is in the stream now, unless it is told to stop before; what others ended is
        swept into it first."""
        with changing(self._lake, f"archive-{self._namespace}") as changes:
            bronze = Bronze(changes, self._namespace)
            reader = self._begin(take_over)
            self._sweep(bronze)
            self._drain(bronze, reader, stop)
            if (end := self._committed())["n"]:
                # Spark tells the source of every batch that was committed, but for the last.
                self._ask(lambda archive: archive.trim(end["sid"], reader))
        return self._done

    def continuously(
        self, stop: threading.Event, *, every: float = 10.0, take_over: bool = False
    ) -> Archived:
        """Whatever comes, every so many seconds, until it is told to stop. An outage of Redis is
        waited for."""
        with changing(self._lake, f"archive-{self._namespace}") as changes:
            bronze = Bronze(changes, self._namespace)
            reader = self._begin(take_over)
            failures, pause = 0, 1.0
            while not stop.is_set():
                before = self._done.batches
                try:
                    self._watch(bronze, reader, every, stop)
                except Exception as error:
                    failures, pause = (
                        (1, 1.0)
                        if self._done.batches > before
                        else (failures + 1, min(pause * 2, _LONGEST_PAUSE))
                    )
                    if not self._is_away() and failures >= _PATIENCE:
                        raise
                    self._tell(f"stopped by {_line_of(error)}; again in {pause:g} s")
                    stop.wait(pause)
        return self._done

    def _watch(self, bronze: Bronze, reader: str, every: float, stop: threading.Event) -> None:
        """A query for as long as nothing goes wrong."""
        self._sweep(bronze)
        swept = time.monotonic()
        query = self._start(bronze, reader, processingTime=f"{every} seconds")
        try:
            while not stop.is_set():
                if query.awaitTermination(1):
                    return
                self._note(query)
                if time.monotonic() - swept >= SWEEP_EVERY:
                    self._sweep(bronze)
                    swept = time.monotonic()
        finally:
            query.stop()

    def _drain(self, bronze: Bronze, reader: str, stop: threading.Event | None) -> None:
        """A query until it has read all there was; on a machine that is too busy to start it,
        another one."""
        for left in reversed(range(_PATIENCE)):
            try:
                query = self._start(bronze, reader, availableNow=True)
                while not query.awaitTermination(1):
                    if stop and stop.is_set():
                        query.stop()
                self._note(query)
                break
            except Exception as error:
                if not left or _TOO_SLOW not in str(error):
                    raise
                self._tell(
                    "this machine is too busy to start a Python process in ten seconds; again"
                )

    def _start(self, bronze: Bronze, reader: str, **trigger: Any) -> StreamingQuery:
        source = self._spark.readStream.format("aioqless").option("namespace", self._namespace)
        if self._url is not None:
            source = source.option("url", self._url)
        frame = (
            source.option("maxEntries", self._entries)
            .option("trim", "true")
            .option("reader", reader)
            .load("events")
        )

        def write(batch: DataFrame, number: int) -> None:
            events, unreadable = bronze.write(batch.toArrow(), number)
            if not events and not unreadable:
                return
            self._done.batches += 1
            self._done.events += events
            self._done.unreadable += unreadable
            aside = f", {unreadable:,} entries to quarantine" if unreadable else ""
            self._tell(f"batch {number}: {events:,} events{aside}")

        written = frame.writeStream.foreachBatch(write).option(
            "checkpointLocation", (self._checkpoint / "events").as_uri()
        )
        return (
            written.queryName(f"aioqless archive of {self._namespace}").trigger(**trigger).start()
        )

    def _begin(self, take_over: bool) -> str:
        """Who this archiver is, when the lake, its checkpoint and the stream belong together."""
        latest, begun = (
            written(self._lake, self._namespace),
            _numbers(self._checkpoint / "events" / "offsets"),
        )
        if latest is not None and not begun:
            raise LakeError(
                f"{self._lake.root} has the events of {self._namespace} up to batch {latest}, but their checkpoint {self._checkpoint} is"
                " gone. Begun anew, it would count batches from 0 and write over them. Bring the checkpoint back, or let this namespace"
                " have another lake (the two can be read together)"
            )
        read = self._committed()
        if latest is None and read["n"] > read["lost"]:
            raise LakeError(
                f"the checkpoint {self._checkpoint} says that events of {self._namespace} were archived, but {self._lake.root} has none."
                " Bring them back; or, if they are to be forgotten, remove the checkpoint, too"
            )
        reader = self._reader()
        state = self._ask(lambda archive: archive.state())
        self._check(state, reader, take_over)
        return reader

    def _reader(self) -> str:
        file = self._checkpoint / "reader"
        if not file.exists():
            self._checkpoint.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(".new")
            new.write_text(uuid.uuid4().hex, "utf-8")
            new.replace(file)
        return file.read_text("utf-8")

    def _check(self, state: ArchiveState, reader: str, take_over: bool) -> None:
        if state.reader not in (None, reader):
            if not take_over:
                raise AioqlessError(
                    f"another lake archives {self._namespace}: reader {state.reader} came to entry {state.read}. Two that trim one stream"
                    " would each miss what the other has; --take-over makes this one the only one"
                )
            self._ask(lambda archive: archive.trim("0-0", reader, takeover=True))
        if not state.on:
            self._tell(
                f"the archive of {self._namespace} is off: nothing comes in until the shared option `archive` is `on`"
            )

    def _sweep(self, bronze: Bronze) -> None:
        swept: SweepResult = self._ask(lambda archive: archive.sweep())
        self._done.swept += swept.found
        self._done.missing += (missing := bronze.set_aside(swept.missing) if swept.missing else 0)
        if swept.found or missing:
            self._tell(
                f"swept: {swept.found:,} jobs that other clients ended, {missing:,} that are gone"
            )

    def _note(self, query: StreamingQuery) -> None:
        lost = max(
            (_offset(progress).get("lost", 0) for progress in query.recentProgress), default=0
        )
        if lost > self._done.lost:
            self._tell(
                f"{lost:,} events were cut before they were read: raise archive-length, or let archive-when-full be hold"
            )
            self._done.lost = lost

    def _committed(self) -> dict[str, Any]:
        """Where the last batch ended that was committed, in the words of the source."""
        commits = _numbers(self._checkpoint / "events" / "commits")
        if not commits:
            return {"sid": "0-0", "n": 0, "lost": 0}
        *_, offset = (
            (self._checkpoint / "events" / "offsets" / str(commits[-1]))
            .read_text("utf-8")
            .splitlines()
        )
        return {"lost": 0, **json.loads(offset)}

    def _is_away(self) -> bool:
        try:
            self._ask(lambda archive: archive.state())
        except (*REDIS_UNAVAILABLE, OSError):
            return True
        return False

    def _ask(self, act: Callable[[Archive], Awaitable[Answer]]) -> Answer:
        async def asked() -> Answer:
            async with Client(self._url, namespace=self._namespace) as client:
                return await act(client.archive)

        return asyncio.run(asked())


def _offset(progress: Any) -> dict[str, Any]:
    """Where a batch ended, in the words of the source."""
    told = (
        json.loads(progress.json)["sources"][0]["endOffset"]
        if hasattr(progress, "json")
        else progress["sources"][0]["endOffset"]
    )
    return told if isinstance(told, dict) else json.loads(told or "{}")


def _numbers(folder: Path) -> list[int]:
    return (
        sorted(int(file.name) for file in folder.glob("*") if file.name.isdecimal())
        if folder.exists()
        else []
    )


def _line_of(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [
        line
        for line in lines
        if "Error: " in line and not line.startswith(("java.", "org.", "py4j."))
    ]
    return (named or lines or [type(error).__name__])[-1 if named else 0][:200]
