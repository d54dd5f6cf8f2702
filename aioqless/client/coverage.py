"""Coverage: which queues workers serve, which they don't, and why jobs wait."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec

from aioqless.client.job.decoding import decode_record
from aioqless.client.job.state import JobState
from aioqless.client.queue_statistics import QueueCounts
from aioqless.client.workers import WorkerCounts
from aioqless.store import Store

DELAYED_AFTER = 30.0  # seconds for which the next job of a queue is ready and doesn't run
CLOSE = 0.75  # of 1, as difflib measures it: one letter of four differs
# pairs of names, each of which takes up to 0.2 ms: clients choose names, and a worker's loop waits
MAX_COMPARED = 1000
NEARLY_REACHED = 0.9  # of a rate limit
QUEUES_PER_CALL = 500  # for which Redis is busy a few milliseconds
MOST_NAMED = 5  # queues in a sentence

_OF_SCHEDULED = ("no_worker", "paused", "unknown_klass")  # others may be over when it is due
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
            return f"{_jobs_wait(self.jobs)} in {self.queue}, which no worker serves{hint}"
        return f"a worker serves {self.queue}, into which no job was put{hint}"


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What may keep the next job of a queue from running, as the command `delays` returns it.

    Attributes:
        lag: For how many seconds the next job has been ready to run.
        limit: The concurrency limit of the queue; 0: none.
        running: Running jobs that count towards it.
        rate: The rate limit of the queue, as a number of starts and seconds; (0, 0): none.
        starts: Starts that count towards it.
        next_start: When the next start may be, in seconds since 1970.
        klass: Klass of the next job that workers without a handler have declined.
        declined: Since when they have; 0 if none has.
    """

    lag: float = 0.0
    limit: float = 0
    running: int = 0
    rate: tuple[float, float] = (0, 0)
    starts: int = 0
    next_start: float = 0.0
    klass: str = ""
    declined: float = 0.0


Reason: TypeAlias = Literal[
    "paused",
    "concurrency_limit",
    "rate_limit",
    "no_worker",
    "unknown_klass",
    "workers_busy",
    "workers_idle",
]


@dataclass(frozen=True)
class QueueDelay:
    """A queue whose jobs wait, and why.

    Attributes:
        queue: Name of the queue.
        jobs: Number of waiting jobs.
        lag: For how many seconds the next one has been ready to run.
        reason: What keeps them from running.
        detail: The reason with its numbers, as a clause about the queue.
    """

    queue: str
    jobs: int
    lag: float
    reason: Reason
    detail: str

    def __str__(self) -> str:
        return f"{_jobs_wait(self.jobs)} in {self.queue}: {self.detail}"


@dataclass(frozen=True)
class JobWait:
    """Why a job has not ended.

    Attributes:
        reason: What keeps it from running; None if it runs, or nothing is known.
        text: The reason as a clause about the job.
        running: Whether a worker has it; it may still decline it.
    """

    reason: Reason | None
    text: str
    running: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Coverage:
    """Which queues are served by the workers that say so.

    Attributes:
        workers: Number of workers by queue, also of queues that don't exist yet.
        unserved: Queues in which jobs wait, none runs, and which no worker serves.
        unused: Queues that a worker serves by name, and into which no job was ever put.
        silent: Number of workers that don't say what they serve: those of other qless clients, and
            people. Unserved queues may be theirs.
        delays: By queue, why its jobs wait: those of a paused queue, and those of others whose next
            job has been ready for 30 seconds.
    """

    workers: dict[str, int] = field(default_factory=dict)
    unserved: list[QueueGap] = field(default_factory=list)
    unused: list[QueueGap] = field(default_factory=list)
    silent: int = 0
    delays: dict[str, QueueDelay] = field(default_factory=dict)


def find_coverage(
    queues: Sequence[QueueCounts],
    workers: Iterable[WorkerCounts],
    now: float,
    limits: Mapping[str, QueueLimits] = MappingProxyType({}),
    active: Collection[str] = (),
) -> Coverage:
    """Compare the existing queues with the queues that workers serve.

    Args:
        queues: All queues of the namespace.
        workers: All workers.
        now: The time, in seconds since 1970.
        limits: What may keep the next job of each queue from running.
        active: Queues of which jobs have started recently.
    """
    alive = _find_alive(workers)
    subscribed = [worker for worker in alive if worker.queues is not None]
    known = [queue.name for queue in queues]
    named = {name for each in subscribed for name in each.queues or () if not is_pattern(name)}
    serving = {name: _find_serving(name, subscribed) for name in {*known, *named}}
    delays: dict[str, QueueDelay] = {}
    unserved: list[QueueCounts] = []
    for queue in queues:
        of = limits.get(queue.name) or QueueLimits()
        delay = _find_delay(queue, of, serving[queue.name], now, queue.name in active)
        if delay and delay.reason == "no_worker":
            unserved.append(queue)
        if delay and (delay.reason == "paused" or _is_late(of, now)):
            delays[queue.name] = delay
    unused = sorted(named.difference(known))
    # A queue that has jobs and workers isn't a misspelling of another one.
    few = len(unserved) * len(unused) <= MAX_COMPARED
    lonely, meant = ([queue.name for queue in unserved], unused) if few else ([], [])
    return Coverage(
        {name: len(each) for name, each in serving.items()},
        [QueueGap(each.name, _similar(each.name, meant), each.waiting) for each in unserved],
        [QueueGap(name, _similar(name, lonely)) for name in unused],
        len(alive) - len(subscribed),
        delays,
    )


async def read_limits(store: Store, names: Sequence[str]) -> dict[str, QueueLimits]:
    """Read what may keep the next jobs of queues from running."""
    found: dict[str, QueueLimits] = {}
    for first in range(0, len(names), QUEUES_PER_CALL):
        page = names[first : first + QUEUES_PER_CALL]
        records = msgspec.convert(await store.delays(queues=page), list[QueueLimits])
        found.update(zip(page, records, strict=True))
    return found


async def find_wait(store: Store, jid: str) -> JobWait | None:
    """Return why a job has not ended; None if there is no such job."""
    if (record := await store.get(jid=jid)) is None:
        return None
    job = decode_record(record)
    if job.state == JobState.DEPENDS:
        return JobWait(None, "it waits for the jobs that it depends on")
    place = f"it is {job.state} in {job.queue}"
    if job.state not in (JobState.WAITING, JobState.SCHEDULED):
        return JobWait(None, place, job.state == JobState.RUNNING)
    counts = msgspec.convert(await store.queues(queue=job.queue), QueueCounts)
    (record,), now = await store.delays(queues=[job.queue]), await store.now()
    of = msgspec.convert(record, QueueLimits)
    if of.klass != job.klass:  # another job of the queue was declined
        of = msgspec.structs.replace(of, declined=0.0)
    alive = _find_alive(msgspec.convert(await store.workers(), list[WorkerCounts]))
    serving = _find_serving(job.queue, alive)
    delay = _find_delay(msgspec.structs.replace(counts, waiting=1), of, serving, now)
    if not delay or (job.state == JobState.SCHEDULED and delay.reason not in _OF_SCHEDULED):
        return JobWait(None, place)
    if delay.reason != "no_worker":
        return JobWait(delay.reason, f"{place}: {delay.detail}")
    served = sorted({name for each in alive for name in each.queues or ()})
    others = f"workers serve {', '.join(served[:MOST_NAMED])}" if served else "no worker is running"
    return JobWait(delay.reason, f"{place}, which no worker serves; {others}")


def find_serving(queue: str, workers: Iterable[WorkerCounts]) -> list[WorkerCounts]:
    """Return the workers that are alive and say that they serve a queue."""
    return _find_serving(queue, _find_alive(workers))


def _find_alive(workers: Iterable[WorkerCounts]) -> list[WorkerCounts]:
    return [worker for worker in workers if worker.alive is not False]


def _find_serving(queue: str, workers: Iterable[WorkerCounts]) -> list[WorkerCounts]:
    return [each for each in workers if any(matches(queue, of) for of in each.queues or ())]


def _is_late(of: QueueLimits, now: float) -> bool:
    return of.lag > DELAYED_AFTER or bool(of.declined and now - of.declined > DELAYED_AFTER)


def _find_delay(
    queue: QueueCounts,
    of: QueueLimits,
    serving: Sequence[WorkerCounts],
    now: float,
    is_active: bool = False,
) -> QueueDelay | None:
    """Return why the jobs of a queue wait; None if none does."""
    if not queue.waiting and not of.declined:
        return None
    most, seconds = of.rate
    reason: Reason
    if queue.paused:
        reason, detail = "paused", "the queue is paused"
    elif of.limit and of.running >= of.limit:
        reason = "concurrency_limit"
        detail = f"{of.running} of {of.limit:g} jobs run (concurrency limit)"
    # Between the end of one start's window and the next start, a reached limit has a little room.
    elif most and of.starts >= max(1, int(most * NEARLY_REACHED)):
        reason = "rate_limit"
        detail = f"{of.starts} of {most:g} starts in {seconds:g} s used (rate limit)"
        if of.next_start > now:
            detail += f", next in {of.next_start - now:.0f} s"
    elif not serving and not queue.running and not of.starts:
        reason, detail = "no_worker", "no worker serves it"
    elif of.declined:
        reason = "unknown_klass"
        detail = f"no worker has a handler for {of.klass}, declined for {now - of.declined:.0f} s"
    elif held := sum(each.jobs for each in serving) or queue.running:
        reason = "workers_busy"
        detail = f"its {_plural(len(serving), 'worker')} may be full, with {_plural(held, 'job')}"
    elif is_active:  # it had no job for a moment
        reason = "workers_busy"
        detail = f"its {_plural(len(serving), 'worker')} may be full: jobs have started recently"
    else:
        reason = "workers_idle"
        detail = f"its {_plural(len(serving), 'worker')} may be paused or stopped, with 0 jobs"
    return QueueDelay(queue.name, queue.waiting or 1, of.lag, reason, detail)


def _jobs_wait(count: int) -> str:
    return "1 job waits" if count == 1 else f"{count} jobs wait"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def matches(queue: str, pattern: str) -> bool:
    """Return whether a queue is the one that a subscription names, or matches its pattern."""
    return queue == pattern or (is_pattern(pattern) and fnmatchcase(queue, pattern))


def is_pattern(name: str) -> bool:
    """Return whether the name of a subscription stands for all queues that match."""
    return bool(_PATTERN.search(name))


def _similar(name: str, others: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(others), 1, CLOSE)), None)
