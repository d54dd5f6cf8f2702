"""Samples the counts of all queues, once for all readers, and computes rates from them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from aioqless.client import Client
from aioqless.client.coverage import Coverage, read_coverage
from aioqless.client.missing_nodes import MissingNode
from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.redis_server import ServerInfo
from aioqless.client.workers import WorkerCounts
from aioqless.contrib.metrics.rates import rates_between

MAX_SAMPLES = 90
MAX_QUEUES = 10_000
MAX_AGE = 2.0  # seconds
ALARM_FOR = 3600  # seconds for which a lost worker is reported
RATES_EXPIRE = 3600  # seconds between two samples after which no rates are computed


@dataclass(frozen=True, kw_only=True)
class Sample:
    """All queues and workers at one time.

    Attributes:
        when: In seconds since 1970.
        queues: Counts of all queues.
        failed: The number of jobs in each failure group.
        workers: The known workers, those seen last first.
        server: Memory, persistence and load of Redis.
        archive_problem: What is wrong with the archive, if anything.
        coverage: Which queues workers serve, and why jobs wait.
        lost: Workers whose processes died, each with when it was last seen.
        missing: Nodes of a partitioned namespace that didn't answer: their jobs aren't counted.
    """

    when: float = 0
    queues: tuple[QueueOverview, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[WorkerCounts, ...] = ()
    server: ServerInfo = field(default_factory=ServerInfo)
    archive_problem: str | None = None
    coverage: Coverage = field(default_factory=Coverage)
    lost: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[MissingNode, ...] = ()

    def sum(self, count: str) -> int:
        """Return the sum of one count over all queues."""
        return sum(getattr(queue, count) for queue in self.queues)


class Sampler:
    """Owns the latest sample, and the rates of the last minutes per queue and in total."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sampling = asyncio.Lock()
        self.latest = Sample()
        self._sampled = -1e9
        self._rates: dict[str, deque[tuple[float, float, float]]] = {}

    async def refresh(self, client: Client | None = None, *, max_age: float = MAX_AGE) -> Sample:
        """Return the latest sample; take a new one if it is older than `max_age` seconds."""
        async with self._sampling:
            if time.monotonic() - self._sampled > max_age:
                sample = await _take_sample(client or self._client)
                self._add(sample, time.monotonic())
        return self.latest

    def rates(self, queue: str = "") -> list[tuple[float, float, float]]:
        """Return (when, completed per second, failed per second) of a queue or of all."""
        return list(self._rates.get(queue, ()))

    def _add(self, sample: Sample, now: float) -> None:
        before, elapsed = self.latest.queues, now - self._sampled
        self.latest, self._sampled = sample, now
        if elapsed > RATES_EXPIRE:
            self._rates = {}
            return
        total_completed = total_failed = 0.0
        for name, rates in rates_between(before, sample.queues, elapsed).items():
            self._add_rates(name, sample.when, rates.completed, rates.failed)
            total_completed += rates.completed
            total_failed += rates.failed
        self._add_rates("", sample.when, total_completed, total_failed)
        for gone in self._rates.keys() - {queue.name for queue in sample.queues} - {""}:
            del self._rates[gone]

    def _add_rates(self, queue: str, when: float, completed: float, failed: float) -> None:
        rates = self._rates.setdefault(queue, deque(maxlen=MAX_SAMPLES))
        rates.append((when, completed, failed))


async def _take_sample(client: Client) -> Sample:
    with client.partial_reads() as missing:
        queues = tuple(await client.queues(count=MAX_QUEUES))
        failed = await client.jobs.failed_counts()
        workers = tuple(await client.workers.counts())
        archive, now = await client.archive.state(), time.time()
        return Sample(
            when=now,
            queues=queues,
            failed=failed,
            workers=workers,
            archive_problem=archive.describe_problem(now),
            server=await client.server.info(),
            coverage=await read_coverage(client.internals.store, queues, workers),
            lost={each.name: each.seen for each in workers if each.alive is False},
            missing=tuple(missing),  # by the reads before
        )
