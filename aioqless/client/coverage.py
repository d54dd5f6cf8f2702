"""Coverage: which queues workers serve, and which they don't."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.workers import WorkerCounts

REGISTER_INTERVAL = 30.0  # seconds between two registrations of a worker
GONE_AFTER = 3 * REGISTER_INTERVAL + 10  # seconds of silence; a worker that was killed says nothing

_PATTERN = re.compile(r"[*?[]")


@dataclass(frozen=True)
class QueueGap:
    """A queue with jobs and no worker, or with workers and no jobs.

    Attributes:
        queue: Name of the queue.
        similar: Name of a queue that may be meant; None if none is similar.
        jobs: Number of waiting jobs.
    """

    queue: str
    similar: str | None = None
    jobs: int = 0

    def __str__(self) -> str:
        hint = f"; did you mean {self.similar}?" if self.similar else ""
        if self.jobs:
            jobs = "1 job waits" if self.jobs == 1 else f"{self.jobs} jobs wait"
            return f"{jobs} in {self.queue}, which no worker serves{hint}"
        return f"a worker serves {self.queue}, into which no job was put{hint}"


@dataclass(frozen=True)
class Coverage:
    """Which queues are served by the workers that say so.

    Attributes:
        workers: Number of workers by queue, also of queues that don't exist yet.
        unserved: Queues in which jobs wait, none runs, and which no worker serves.
        unused: Queues that a worker serves by name, and into which no job was ever put.
        silent: Number of workers that don't say what they serve: those of other qless clients, and
            people. Unserved queues may be theirs.
    """

    workers: dict[str, int] = field(default_factory=dict)
    unserved: list[QueueGap] = field(default_factory=list)
    unused: list[QueueGap] = field(default_factory=list)
    silent: int = 0


def find_coverage(
    queues: Sequence[QueueOverview], workers: Iterable[WorkerCounts], now: float
) -> Coverage:
    """Compare the existing queues with the queues that workers serve.

    Args:
        queues: All queues of the namespace.
        workers: All workers.
        now: The time, in seconds since 1970. Workers that were silent for long don't count.
    """
    alive = [worker for worker in workers if now - worker.seen <= GONE_AFTER]
    subscribed = [worker.queues for worker in alive if worker.queues is not None]
    known = [queue.name for queue in queues]
    named = {name for each in subscribed for name in each if not _PATTERN.search(name)}
    counts = {
        name: sum(any(_matches(name, pattern) for pattern in each) for each in subscribed)
        for name in {*known, *named}
    }
    unserved = [
        queue for queue in queues if queue.waiting and not queue.running and not counts[queue.name]
    ]
    unused = sorted(named.difference(known))
    candidates = [queue.name for queue in unserved] or known
    return Coverage(
        counts,
        [QueueGap(each.name, _similar(each.name, named), each.waiting) for each in unserved],
        [QueueGap(name, _similar(name, candidates)) for name in unused],
        len(alive) - len(subscribed),
    )


def _matches(queue: str, pattern: str) -> bool:
    return fnmatchcase(queue, pattern) if _PATTERN.search(pattern) else queue == pattern


def _similar(name: str, others: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(others), 1)), None)
