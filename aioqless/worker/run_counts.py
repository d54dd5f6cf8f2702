"""RunCounts: counts the runs of a worker, for the beats that report them and for exporters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from aioqless.client.run_buckets import RUN_BUCKETS, UNITS, WAIT_BUCKETS, WAITS, bucket_of
from aioqless.runtime.log import log
from aioqless.validation import describe

MOST_SERIES = 1000  # as in run_metrics.lua
SERIES_PER_BEAT = 10  # keeps Redis busy for about a millisecond
OTHERS = ("", "")  # queue and klass of runs that are not counted by their own


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, as it is counted.

    Attributes:
        queue: Queue of the job; empty if the klass has no handler.
        klass: Klass of the job; empty if it has no handler.
        outcome: How it ended, as in the log event: `completed`, `failed`, `retried`, ...
        seconds: How long it took, until Redis had its outcome.
        waited: How long its job had waited, in seconds, if that is known.
        error: What the handler raised, if anything.
        bulk: Number of jobs of its bulk, once for each bulk; else 0.
    """

    queue: str
    klass: str
    outcome: str
    seconds: float
    waited: float | None = None
    error: BaseException | None = None
    bulk: int = 0


@dataclass
class Series:
    """The runs of one klass in one queue since the last report."""

    failures: int = 0
    retries: int = 0
    run_seconds: float = 0.0
    wait_seconds: float = 0.0
    buckets: dict[int, int] = field(default_factory=dict)

    def values(self) -> list[int]:
        """Return the counts as run_metrics.lua adds them."""
        units = [round(seconds * UNITS) for seconds in (self.run_seconds, self.wait_seconds)]
        pairs = [number for pair in self.buckets.items() for number in pair]
        return [self.failures, self.retries, *units, *pairs]


@dataclass(frozen=True)
class Report:
    """Counts that are sent until Redis answers: it adds those of a number once.

    Attributes:
        number: Greater than those of the reporter's former reports.
        counts: Rows of queue, klass and values, in JSON.
    """

    number: int
    counts: str


class RunCounts:
    """Counts what a worker runs.

    A job costs no command: the beats of one of the worker's consumers carry the counts. Runs are
    counted on the worker's loop, and reported from the thread of the lock renewer. While Redis
    doesn't answer, counts add up; they take no more memory than those of all series.

    Attributes:
        exporters: Called with each run, on the worker's loop: Prometheus, OpenTelemetry.
    """

    def __init__(self) -> None:
        self.exporters: list[Callable[[EndedRun], object]] = []
        self._lock = Lock()
        self._series: dict[tuple[str, str], Series] = {}
        self._reporters: list[Reporter] = []

    def count(self, run: EndedRun) -> None:
        """Count a run."""
        series = run.queue, run.klass
        with self._lock:
            counts = self._series.get(series)
            if counts is None:
                if len(self._series) >= MOST_SERIES:
                    series = OTHERS
                counts = self._series.setdefault(series, Series())
            if run.outcome == "failed":
                counts.failures += 1
            elif run.outcome == "retried":
                counts.retries += 1
            buckets = counts.buckets
            bucket = bucket_of(run.seconds, RUN_BUCKETS)
            buckets[bucket] = buckets.get(bucket, 0) + 1
            counts.run_seconds += run.seconds
            if run.waited is not None:
                bucket = WAITS + bucket_of(run.waited, WAIT_BUCKETS)
                buckets[bucket] = buckets.get(bucket, 0) + 1
                counts.wait_seconds += run.waited
        for export in self.exporters:
            try:
                export(run)
            except Exception as error:  # a service to the operator: the job has ended well
                log.error("metrics.failed", error=describe(error), exc_info=True)

    def make_reporter(self) -> Reporter:
        """Return what reports with the beats of a consumer; the first that is active does."""
        reporter = Reporter(self)
        self._reporters.append(reporter)
        return reporter

    def take(self, reporter: Reporter) -> dict[tuple[str, str], Series]:
        """Return what was counted since the last report; nothing if another one reports it."""
        if reporter is not next((each for each in self._reporters if each.active), None):
            return {}
        with self._lock:
            series, self._series = self._series, {}
        return series


class Reporter:
    """Makes reports of counts for the beats to one Redis.

    Owns those that Redis has not answered; new ones are made when there are none. Several beats may
    be under way at once, from different threads.

    Attributes:
        active: Whether its consumer sends beats.
    """

    def __init__(self, counts: RunCounts) -> None:
        self.active = False
        self._counts = counts
        self._number = 0
        self._lock = Lock()
        self._reports: list[Report] = []

    def next(self) -> Report | None:
        """Return the report to send: the oldest without an answer, or a new one."""
        with self._lock:
            if not self._reports:
                rows = [
                    (queue, klass, series.values())
                    for (queue, klass), series in self._counts.take(self).items()
                ]
                for first in range(0, len(rows), SERIES_PER_BEAT):
                    self._number += 1
                    # not in ASCII: bytes of names that aren't UTF-8 return as they came
                    text = json.dumps(rows[first : first + SERIES_PER_BEAT], ensure_ascii=False)
                    self._reports.append(Report(self._number, text))
            return self._reports[0] if self._reports else None

    def note_answer(self, report: Report | None) -> bool:
        """Forget a report that Redis has answered; return whether the next one is waiting."""
        with self._lock:
            if self._reports and self._reports[0] is report:
                del self._reports[0]
            return bool(self._reports)
