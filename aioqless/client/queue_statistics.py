"""Counts and statistics of queues."""

from __future__ import annotations

import msgspec


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Number of jobs of a queue in each state.

    Attributes:
        name: Name of the queue.
        waiting: Jobs that a worker may pop now.
        running: Jobs that a worker holds.
        stalled: Running jobs whose lock has expired.
        scheduled: Jobs that are delayed, wait for a retry or are held back by a limit.
        depends: Jobs that wait for other jobs.
        recurring: Recurring jobs of the queue with an interval; those with a cron expression belong
            to the namespace, and are not counted.
        paused: Whether workers are kept from popping.
    """

    name: str
    waiting: int = 0
    running: int = 0
    stalled: int = 0
    scheduled: int = 0
    depends: int = 0
    recurring: int = 0
    paused: bool = False


class QueueOverview(QueueCounts, frozen=True, kw_only=True, gc=False):
    """The counts of a queue, and its totals of today (UTC) so far.

    Attributes:
        popped: Runs started.
        completed: Jobs completed.
        failures: Jobs failed.
        retries: Sum of `lost_locks` and `explicit_retries`.
        lost_locks: Runs whose lock expired and was taken over.
        explicit_retries: Runs that ended in a retry.
    """

    popped: int = 0
    completed: int = 0
    failures: int = 0
    retries: int = 0
    lost_locks: int = 0
    explicit_retries: int = 0


class Tenant(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tenant of a queue with fair turns, and its jobs of one priority.

    Attributes:
        key: What `fair` made of the data, such as `customer=7`.
        priority: Priority of the jobs: each has turns of its own.
        waiting: Jobs that wait, or are held back by a limit.
        running: Jobs that run, among the first 1,000 of the queue.
        lag: For how many seconds its next job could have been running; 0 if none waits.
    """

    key: str
    priority: float = 0
    waiting: int = 0
    running: int = 0
    lag: float = 0.0


class DayTotals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The totals of a queue on one day.

    Attributes:
        day: When the day began (UTC), in seconds since 1970.
        popped: Runs started.
        completed: Jobs completed.
        failures: Jobs failed.
        retries: Sum of `lost_locks` and `explicit_retries`.
        lost_locks: Runs whose lock expired and was taken over.
        explicit_retries: Runs that ended in a retry.
    """

    day: float
    popped: int
    completed: int
    failures: int
    retries: int
    lost_locks: int
    explicit_retries: int


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took, over all jobs of a day, in seconds.

    Attributes:
        count: Number of jobs.
        total: Sum of their durations.
        mean: Mean duration.
        std: Standard deviation.
        variance: Variance.
        histogram: 148 counters: 60 seconds, 59 minutes, 23 hours, 6 days.
    """

    count: int
    total: float
    mean: float
    std: float
    variance: float
    histogram: list[int]


class DayStats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a queue on one day.

    Attributes:
        failures: Jobs failed on that day.
        failed: Those of them that are still failed.
        retries: Sum of `lost_locks` and `explicit_retries`.
        lost_locks: Runs whose lock expired and was taken over.
        explicit_retries: Runs that ended in a retry.
        wait: How long jobs waited before they ran.
        run: How long completed jobs ran.
    """

    failures: int
    failed: int
    retries: int
    lost_locks: int
    explicit_retries: int
    wait: Durations
    run: Durations
