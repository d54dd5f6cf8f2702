"""Overview: what a namespace is doing, read at once for all who show it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from redis import exceptions

from aioqless.client.archive import ArchiveState
from aioqless.client.client import Client
from aioqless.client.coverage import Coverage, find_coverage, read_limits
from aioqless.client.queue_statistics import QueueCounts, QueueOverview
from aioqless.client.redis_server import ServerInfo
from aioqless.client.workers import WorkerCounts

MAX_QUEUES = 10_000
MAX_RATES = 90  # overviews whose rates are kept
ACTIVE_FOR = 60.0  # seconds for which a queue counts as active after a job of it has started
RATES_EXPIRE = 3600  # seconds between two overviews after which no rates are computed
# About how many commands of Redis take the counts of a queue, why its jobs wait, and a worker.
PER_QUEUE, PER_DELAY, PER_WORKER = 9, 5, 4


class Rates(NamedTuple):
    """Jobs per second between two overviews, of a queue or of all.

    Attributes:
        when: When the later one was read, in seconds since 1970.
        completed: Completed jobs.
        failed: Failed jobs.
    """

    when: float = 0.0
    completed: float = 0.0
    failed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a namespace is doing at one time.

    Attributes:
        when: The time, in seconds since 1970.
        queues: The counts of all queues and their totals of today, by when each was first seen.
        lags: For how many seconds the next job of each queue has been ready to run.
        coverage: Which queues workers serve, and why jobs wait.
        started: When a job of a queue was last seen to have started between two overviews.
        failed: The number of jobs in each failure group.
        workers: The known workers, those seen last first.
        archive: The state of the archive stream.
        server: Memory, persistence and load of Redis; empty if the user may not read it.
        commands: About how many commands of Redis it took.
    """

    when: float = 0
    queues: tuple[QueueOverview, ...] = ()
    lags: Mapping[str, float] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    started: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[WorkerCounts, ...] = ()
    archive: ArchiveState = field(default_factory=ArchiveState)
    server: ServerInfo = field(default_factory=ServerInfo)
    commands: int = 0

    @property
    def lost(self) -> dict[str, float]:
        """Workers whose processes died, each with when it was last seen."""
        return {each.name: each.seen for each in self.workers if each.alive is False}

    def sum(self, count: str) -> int:
        """Return the sum of one count over all queues."""
        return sum(getattr(queue, count) for queue in self.queues)


async def read_overview(
    client: Client, *, most: int = MAX_QUEUES, before: Overview | None = None
) -> Overview:
    """Read what a namespace is doing.

    Args:
        client: The client of the namespace.
        most: Maximum number of queues to look at; of workers, at most 1,000 are read.
        before: An earlier overview, to see which jobs have started since.
    """
    store = client.internals.store
    queues, failed, workers, archive, now, server = await asyncio.gather(
        client.queues(count=most),
        client.jobs.failed_counts(),
        client.workers.counts(),
        client.archive.state(),
        store.now(),
        _read_server(client),
    )
    ready = [each.name for each in queues if each.waiting or each.scheduled]
    limits = await read_limits(store, ready)
    paused = {each.name for each in queues if each.paused}
    running = {name: each for name, each in limits.items() if name not in paused}
    started = _find_started(before, queues, now) if before else {}
    return Overview(
        when=now,
        queues=tuple(queues),
        lags={each.name: limits[each.name].lag if each.name in limits else 0.0 for each in queues},
        coverage=find_coverage(queues, workers, now, running, started),
        started=started,
        failed=failed,
        workers=tuple(workers),
        archive=archive,
        server=server,
        commands=PER_QUEUE * len(queues)
        + PER_DELAY * len(ready)
        + PER_WORKER * len(workers)
        + len(failed),
    )


def _find_started(
    before: Overview, queues: Iterable[QueueOverview], now: float
) -> dict[str, float]:
    """Return of which queues jobs have started recently, and when that was seen."""
    if now - before.when > ACTIVE_FOR:
        return {}
    popped = {each.name: each.popped for each in before.queues}
    seen = {each.name: now for each in queues if each.popped > popped.get(each.name, 0)}
    kept = {name: when for name, when in before.started.items() if now - when <= ACTIVE_FOR}
    return kept | seen


async def read_coverage(client: Client, queue: QueueCounts) -> Coverage:
    """Read which workers serve a queue, and why its jobs wait; other queues are left out."""
    store = client.internals.store
    workers, limits, now = await asyncio.gather(
        client.workers.counts(), read_limits(store, [queue.name]), store.now()
    )
    return replace(find_coverage([queue], workers, now, limits), unused=[])


async def _read_server(client: Client) -> ServerInfo:
    try:
        return await client.server.info()
    except exceptions.NoPermissionError:
        return ServerInfo()


class OverviewReader:
    """Reads the overviews of a process, which all its readers share.

    Owns the latest one, and the rates of the latest ones per queue and in total.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reading = asyncio.Lock()
        self.latest = Overview()
        self._read_at = -1e9
        self._rates: dict[str, deque[Rates]] = {}

    async def read(self, *, max_age: float = 0.0) -> Overview:
        """Return the latest overview; read one if it is older than `max_age` seconds."""
        async with self._reading:
            if time.monotonic() - self._read_at > max_age:
                self._add(await read_overview(self._client, before=self.latest), time.monotonic())
        return self.latest

    def rates(self, queue: str = "") -> list[Rates]:
        """Return the rates of a queue, or of all, the oldest first."""
        return list(self._rates.get(queue, ()))

    def _add(self, overview: Overview, now: float) -> None:
        before, seconds = self.latest.queues, now - self._read_at
        self.latest, self._read_at = overview, now
        if seconds > RATES_EXPIRE:
            self._rates = {}
            return
        rates = rates_between(before, overview.queues, overview.when, seconds)
        for name, each in rates.items():
            self._rates.setdefault(name, deque(maxlen=MAX_RATES)).append(each)
        for gone in self._rates.keys() - rates.keys():
            del self._rates[gone]


def rates_between(
    before: Iterable[QueueOverview], after: Iterable[QueueOverview], when: float, seconds: float
) -> dict[str, Rates]:
    """Compute the rates of each queue between two overviews, and as "" those of all.

    The totals start again at 0 each day (UTC), so counts just before midnight are missing. A
    queue that is missing in the earlier overview counts from 0.

    Args:
        before: The queues of the earlier overview.
        after: Those of the later one.
        when: When the later one was read, in seconds since 1970.
        seconds: How long that was after the earlier one.
    """
    earlier = {queue.name: queue for queue in before}
    rates = {"": Rates(when)}
    for queue in after:
        was = earlier.get(queue.name) or QueueOverview(name=queue.name)
        completed = _growth(was.completed, queue.completed) / seconds
        failed = _growth(was.failures, queue.failures) / seconds
        rates[queue.name] = Rates(when, completed, failed)
        total = rates[""]
        rates[""] = Rates(when, total.completed + completed, total.failed + failed)
    return rates


def _growth(before: int, after: int) -> int:
    return after - before if after >= before else after
