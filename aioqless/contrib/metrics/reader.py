"""Metrics: what has run by klass and queue, in periods of time, and deploy marks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar, cast

import msgspec

from aioqless import validation
from aioqless.client.run_buckets import (
    RUN_BUCKETS,
    UNITS,
    WAIT_BUCKETS,
    WAITS,
    begin_of,
    bucket_of,
)
from aioqless.contrib.metrics.generated_commands import MetricsCommands
from aioqless.store import Store
from aioqless.validation import Seconds

T = TypeVar("T")

OTHERS = "others"  # klass and queue of runs that are not counted by their own
KEPT = {60: 8 * 3600, 600: 3 * 86400, 3600: 30 * 86400}  # seconds, by the length of a period
LONGEST = {60: 2 * 3600, 600: 86400}  # for which a read takes periods of this length by itself
SERIES_PER_CALL = 50
DAY = 86400
MOST_MARKS = 200


class Quantiles(msgspec.Struct, frozen=True, gc=False):
    """How long something took, in seconds; None where nothing was measured.

    Attributes:
        count: How many were measured.
        mean: Mean duration.
        p50: Median.
        p95: 95th percentile.
        p99: 99th percentile.
    """

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class RunTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What has run in a time.

    Attributes:
        start: When the time began, in seconds since 1970.
        end: When it ended.
        runs: Runs, however they ended.
        failures: Runs after which the job failed.
        retries: Runs after which the job was retried.
        run_seconds: Sum of how long they took.
        wait_seconds: Sum of how long their jobs had waited.
        run_buckets: How many took how long, by `bucket_of`.
        wait_buckets: How many jobs had waited how long.
    """

    start: float
    end: float
    runs: int = 0
    failures: int = 0
    retries: int = 0
    run_seconds: float = 0.0
    wait_seconds: float = 0.0
    run_buckets: dict[int, int] = {}
    wait_buckets: dict[int, int] = {}

    @property
    def rate(self) -> float:
        """Runs per second."""
        return self.runs / (self.end - self.start) if self.end > self.start else 0.0

    @property
    def failure_rate(self) -> float:
        """Share of the runs after which the job failed."""
        return self.failures / self.runs if self.runs else 0.0

    @property
    def run(self) -> Quantiles:
        """How long the runs took."""
        return _quantiles(self.run_buckets, self.run_seconds, RUN_BUCKETS)

    @property
    def wait(self) -> Quantiles:
        """How long their jobs had waited."""
        return _quantiles(self.wait_buckets, self.wait_seconds, WAIT_BUCKETS)

    @property
    def run_bars(self) -> list[tuple[float, float, int]]:
        """The begin and the end of each bucket of runs, in seconds, and its count."""
        return _list_bars(self.run_buckets, RUN_BUCKETS)

    @property
    def wait_bars(self) -> list[tuple[float, float, int]]:
        """The begin and the end of each bucket of waits, in seconds, and its count."""
        return _list_bars(self.wait_buckets, WAIT_BUCKETS)

    def summarize(self) -> dict[str, object]:
        """Return counts, rate and quantiles, as the command line prints them in JSON."""
        return {
            "runs": self.runs,
            "failures": self.failures,
            "retries": self.retries,
            "rate": self.rate,
            "run": self.run,
            "wait": self.wait,
        }

    @classmethod
    def sum(cls, totals: Iterable[RunTotals], *, start: float, end: float) -> RunTotals:
        """Return what has run in several times."""
        listed, run_buckets, wait_buckets = list(totals), Counter[int](), Counter[int]()
        for each in listed:
            run_buckets.update(each.run_buckets)
            wait_buckets.update(each.wait_buckets)
        return RunTotals(
            start=start,
            end=end,
            runs=sum(each.runs for each in listed),
            failures=sum(each.failures for each in listed),
            retries=sum(each.retries for each in listed),
            run_seconds=sum(each.run_seconds for each in listed),
            wait_seconds=sum(each.wait_seconds for each in listed),
            run_buckets=dict(run_buckets),
            wait_buckets=dict(wait_buckets),
        )


class KlassMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What has run of a klass in a queue.

    Attributes:
        klass: Name of the klass; "others" for klasses without a handler, and beyond the first
            1,000 pairs of klass and queue.
        queue: Name of the queue; "others" with them.
        step: Seconds of a period.
        periods: The periods in which something ended, oldest first.
        total: All of them.
    """

    klass: str
    queue: str
    step: int
    periods: tuple[RunTotals, ...]
    total: RunTotals

    def between(self, start: float, end: float) -> RunTotals:
        """Return what has run in the periods that began in a time.

        Args:
            start: Its begin, in seconds since 1970.
            end: Its end.
        """
        inside = (each for each in self.periods if start <= each.start < end)
        return RunTotals.sum(inside, start=start, end=end)


class Mark(msgspec.Struct, frozen=True):
    """A moment that charts show.

    Attributes:
        at: The moment, in seconds since 1970.
        text: What happened; for a deploy the version.
        deploy: Whether a worker has reported a new version.
    """

    at: float
    text: str
    deploy: bool


class WorkerFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a worker is and uses, by its latest beat.

    Attributes:
        host: Name of its machine.
        pid: Id of its process.
        aioqless: Version of aioqless.
        version: Version of the application, if it is known.
        started: When it started, in seconds since 1970.
        memory: Memory that its process uses, in bytes.
        busy: Number of its slots that run jobs.
        slots: Maximum number of jobs at once.
    """

    # The worker may be of another version of aioqless, which reports something else.
    host: str = ""
    pid: int = 0
    aioqless: str = ""
    version: str | None = None
    started: float = 0.0
    memory: int = 0
    busy: int = 0
    slots: int = 0


class WorkerSample(msgspec.Struct, frozen=True, gc=False):
    """What a worker used in a minute, when it first said so.

    Attributes:
        start: When the minute began, in seconds since 1970.
        memory: Memory of its process, in bytes.
        busy: Number of its slots that ran jobs.
    """

    start: float
    memory: int
    busy: int


class Metrics:
    """What workers have counted: their beats report it every 5 seconds, and when they stop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._commands = MetricsCommands(store)

    async def klasses(
        self,
        since: Seconds = 8 * 3600,
        *,
        queue: str | None = None,
        klass: str | None = None,
        step: int | None = None,
    ) -> list[KlassMetrics]:
        """Return what has run, by klass and queue; what took most time first.

        Args:
            since: How long ago the time began, at most 30 days. Its begin is rounded down to that
                of a period.
            queue: Only this queue.
            klass: Only this klass.
            step: Seconds of a period: 60 (kept for 8 hours), 600 (3 days) or 3600 (30 days);
                default: 60 for up to 2 hours, 600 for up to a day.

        Raises:
            ValueError: Periods of this length are not kept for so long.
        """
        seconds = validation.check_seconds("since", since)
        step = step or next((each for each, most in LONGEST.items() if seconds <= most), 3600)
        if not seconds <= KEPT.get(step, 0):
            raise ValueError(f"since is {seconds:g} s, and step {step}: {_KEPT_TEXT}")
        now = await self._store.now()
        begin = (now - seconds) // step * step
        names: dict[str, tuple[str, str]] = {}
        for name in await self._commands.metrics_series():
            found_queue, found_klass = _parse_series(name)
            if queue in (None, found_queue) and klass in (None, found_klass):
                names[name] = found_queue, found_klass
        listed, found = list(names), list[KlassMetrics]()
        for first in range(0, len(listed), SERIES_PER_CALL):
            asked = listed[first : first + SERIES_PER_CALL]
            replies = await self._commands.metrics_periods(
                seconds=step, since=begin, now=now, series=asked
            )
            for name, records in zip(asked, replies, strict=True):
                # the clock may have been ahead, see run_metrics.lua
                periods = _merge_periods(
                    each
                    for each in (_decode_record(record, step) for record in records)
                    if begin <= each.start <= now + 2 * step
                )
                if periods:
                    in_queue, of_klass = names[name]
                    total = RunTotals.sum(periods, start=begin, end=max(now, periods[-1].start))
                    found.append(
                        KlassMetrics(
                            klass=of_klass, queue=in_queue, step=step, periods=periods, total=total
                        )
                    )
        return sorted(found, key=lambda each: -each.total.run_seconds)

    async def of_day(self, queue: str, day: float) -> RunTotals:
        """Return what has run of a queue on a day (UTC), if it began at most 30 days ago.

        Args:
            queue: Name of the queue.
            day: Any time of the day, in seconds since 1970.
        """
        begin = day // DAY * DAY
        since = await self._store.now() - begin
        kept = 0 < since <= KEPT[3600]
        found = await self.klasses(since, queue=queue, step=3600) if kept else []
        totals = [each.between(begin, begin + DAY) for each in found]
        return RunTotals.sum(totals, start=begin, end=begin + DAY)

    async def klass_names(self) -> list[str]:
        """Return the klasses of which workers have reported runs in the last 30 days."""
        found = {_parse_series(name)[1] for name in await self._commands.metrics_series()}
        return sorted(found)

    async def workers(self, *names: str) -> dict[str, WorkerFacts]:
        """Return what workers are, by the latest beat of each.

        It is true of workers that are alive: `client.workers` says which these are.

        Args:
            names: Names of workers, at most 1,000.
        """
        texts = await self._commands.metrics_facts(workers=names)
        found = {name: _decode(text, WorkerFacts) for name, text in zip(names, texts, strict=True)}
        return {name: facts for name, facts in found.items() if facts}

    async def worker_history(self, name: str) -> list[WorkerSample]:
        """Return what a worker has used in the last 8 hours, oldest first; one sample per minute.

        Args:
            name: Name of the worker.
        """
        lines = (await self._commands.metrics_history(worker=name)).splitlines()
        samples = {int(line.split()[0]): line.split()[1:] for line in lines}
        return [
            WorkerSample(60.0 * minute, int(memory), int(busy))
            for minute, (memory, busy) in sorted(samples.items())
        ]

    async def marks(self, since: Seconds = 30 * 86400) -> list[Mark]:
        """Return the latest 200 marks, newest first.

        Args:
            since: Maximum age of a mark.
        """
        begin = await self._store.now() - validation.check_seconds("since", since)
        decoded = (_decode(text, Mark) for text in await self._commands.metrics_marks())
        marks, deployed = list[Mark](), ""
        for mark in sorted(filter(None, decoded), key=lambda mark: mark.at):
            # Each partition has its own mark of a version.
            if not (mark.deploy and mark.text == deployed):
                marks.append(mark)
            deployed = mark.text if mark.deploy else deployed
        return [mark for mark in reversed(marks[-MOST_MARKS:]) if mark.at >= begin]

    async def mark(self, text: str) -> None:
        """Mark this moment in charts.

        Args:
            text: What happens, in at most 512 bytes.
        """
        await self._commands.mark(text=validation.check_name("text", text))


_KEPT_TEXT = "periods of 60 s are kept for 8 hours, of 600 s for 3 days, of 3600 s for 30 days"


def _decode(text: str, type_: type[T]) -> T | None:
    """Decode a record; None where there is none, or another client has stored something else."""
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=type_)
    except msgspec.MsgspecError:
        return None


def _parse_series(name: str) -> tuple[str, str]:
    """Return the queue and the klass of a series."""
    length, _, rest = name.encode("utf-8", "surrogateescape").partition(b":")
    queue, klass = rest[: int(length)], rest[int(length) + 1 :]
    if not klass:
        return OTHERS, OTHERS
    return queue.decode("utf-8", "surrogateescape"), klass.decode("utf-8", "surrogateescape")


def _decode_record(record: bytes, step: int) -> RunTotals:
    """Decode a record, as run_metrics.lua has it."""
    numbers = iter(cast("list[int]", msgspec.msgpack.decode(record)))
    period, failures, retries, run_units, wait_units = islice(numbers, 5)
    run_buckets, wait_buckets = _read_histogram(numbers), _read_histogram(numbers)
    return RunTotals(
        start=period * step,
        end=(period + 1) * step,
        runs=sum(run_buckets.values()),
        failures=failures,
        retries=retries,
        run_seconds=run_units / UNITS,
        wait_seconds=wait_units / UNITS,
        run_buckets=run_buckets,
        wait_buckets={each - WAITS: count for each, count in wait_buckets.items()},
    )


def _merge_periods(records: Iterable[RunTotals]) -> tuple[RunTotals, ...]:
    """Return one record of each period, of which each partition may have one; oldest first."""
    found: dict[float, RunTotals] = {}
    for each in records:
        former = found.get(each.start)
        found[each.start] = (
            RunTotals.sum([former, each], start=each.start, end=each.end) if former else each
        )
    return tuple(each for _, each in sorted(found.items()))


def _read_histogram(numbers: Iterator[int]) -> dict[int, int]:
    """Read the first bucket, the number of buckets, and their counts."""
    first, many = islice(numbers, 2)
    return {first + i: count for i, count in enumerate(islice(numbers, many)) if count}


def _list_bars(counts: Mapping[int, int], buckets: float) -> list[tuple[float, float, int]]:
    last = bucket_of(math.inf, buckets)
    return [
        (
            begin_of(bucket, buckets),
            begin_of(bucket + 1, buckets) if bucket < last else math.inf,
            counts.get(bucket, 0),
        )
        for bucket in (range(min(counts), max(counts) + 1) if counts else ())
    ]


def _quantiles(counts: Mapping[int, int], seconds: float, buckets: float) -> Quantiles:
    count = sum(counts.values())
    if not count:
        return Quantiles(0, None, None, None, None)
    p50, p95, p99 = (_quantile(counts, share * count, buckets) for share in (0.5, 0.95, 0.99))
    return Quantiles(count, seconds / count, p50, p95, p99)


def _quantile(counts: Mapping[int, int], rank: float, buckets: float) -> float:
    """Return the duration of this rank, as if those of a bucket were spread evenly in it."""
    below, bucket = 0, min(counts)
    while below + counts.get(bucket, 0) < rank:
        below += counts.get(bucket, 0)
        bucket += 1
    return begin_of(bucket + (rank - below) / counts[bucket], buckets)
