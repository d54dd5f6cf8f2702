"""Reads Redis periodically, and computes rates."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redis import exceptions

from aioqless.client import Client
from aioqless.client.job.summaries import WorkerSummary
from aioqless.client.queue_statistics import QueueOverview
from aioqless.contrib.metrics.rates import Rates, rates_between

MAX_SAMPLES = 60
WORKERS_PER_CALL = 100


@dataclass(frozen=True, kw_only=True)
class QueueSample:
    """The state of a queue.

    Attributes:
        rates: jobs per second that were completed and failed since the previous sample.
        done: the rates of completed jobs of the latest samples.
    """

    counts: QueueOverview
    rates: Rates
    done: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The state of everything at one moment.

    Attributes:
        error: why Redis doesn't answer, and the other fields are of the last answer, or why they
            lack some partitions.
    """

    when: float = 0
    queues: tuple[QueueSample, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[WorkerSummary, ...] = ()
    redis: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    def total(self, count: str) -> int:
        """Return the sum of a count over all queues."""
        return sum(getattr(queue.counts, count) for queue in self.queues)


class Sampler:
    """Owns the previous totals, from which rates are computed.

    A sample takes four calls and one per hundred workers, for at most 1,000 queues and 1,000
    workers.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before: list[QueueOverview] = []
        self._rates: dict[str, deque[float]] = {}
        self._sampled_at: float | None = None

    async def sample(self) -> Snapshot:
        """Read everything; raises what the client does."""
        with self._client.partial_reads() as missing:
            queues, failed, counts = await asyncio.gather(
                self._client.queues(),
                self._client.jobs.failed_counts(),
                self._client.workers.counts(),
            )
            workers = await self._working([worker.name for worker in counts])
        redis = {} if missing else await self._info()
        now = time.monotonic()
        rates: dict[str, Rates] = {}
        if self._sampled_at is not None:
            rates = rates_between(self._before, queues, now - self._sampled_at)
        self._before, self._sampled_at = queues, now
        return Snapshot(
            when=time.time(),
            queues=tuple(
                self._queue(counts, rates.get(counts.name, Rates()))
                for counts in sorted(queues, key=lambda each: each.name)
            ),
            failed=dict(sorted(failed.items(), key=lambda each: (-each[1], each[0]))),
            workers=workers,
            redis=redis,
            error="; ".join(map(str, missing)),
        )

    async def _working(self, names: list[str]) -> tuple[WorkerSummary, ...]:
        calls = (
            self._client.workers.working(*names[first : first + WORKERS_PER_CALL], most=1)
            for first in range(0, len(names), WORKERS_PER_CALL)
        )
        found = [worker for some in await asyncio.gather(*calls) for worker in some]
        return tuple(sorted(found, key=lambda each: (each.alive is False, each.name)))

    async def _info(self) -> Mapping[str, Any]:
        try:
            info: Mapping[str, Any] = await self._client.redis.info()
        except exceptions.NoPermissionError:
            return {}
        return info

    def _queue(self, counts: QueueOverview, rates: Rates) -> QueueSample:
        done = self._rates.setdefault(counts.name, deque(maxlen=MAX_SAMPLES))
        done.append(rates.completed)
        return QueueSample(counts=counts, rates=rates, done=tuple(done))
