"""What is seen of Redis, look by look, and how fast it changes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redis import exceptions

from aioqless.client import Client
from aioqless.client.job.summaries import WorkerGlance
from aioqless.client.results import QueueOverview, Rates, rates_between

KEPT = 60  # looks
A_CALL = 100  # workers
SILENCE = 60  # seconds after which a worker comes behind those that are there


@dataclass(frozen=True, kw_only=True)
class QueueSeen:
    """A queue: its counts, how many jobs a second were completed and failed since the look before,
    and `done`: how many were completed at the latest looks."""

    counts: QueueOverview
    rates: Rates
    done: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Everything at one moment. `away` says why Redis doesn't answer; what was seen before
    stays."""

    when: float = 0
    queues: tuple[QueueSeen, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)
    workers: tuple[WorkerGlance, ...] = ()
    redis: Mapping[str, Any] = field(default_factory=dict)
    away: str = ""

    def sum(self, count: str) -> int:
        return sum(getattr(queue.counts, count) for queue in self.queues)


class Looking:
    """Owns what was seen before, from which rates are made. A look is four calls, however much
    there is, and one for each hundred workers: of 1,000 queues and 1,000 workers at most."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before: list[QueueOverview] = []
        self._rates: dict[str, deque[float]] = {}
        self._looked: float | None = None

    async def look(self) -> Seen:
        """What there is now. Raises what the client does."""
        queues, failed, workers, redis = await asyncio.gather(
            self._client.queues(),
            self._client.jobs.failed(),
            self._client.workers.counts(),
            self._info(),
        )
        now = time.monotonic()
        if self._looked is None:
            rates = {}
        else:
            rates = rates_between(self._before, queues, now - self._looked)
        self._before, self._looked = queues, now
        return Seen(
            when=time.time(),
            queues=tuple(
                self._queue(counts, rates.get(counts.name, Rates()))
                for counts in sorted(queues, key=lambda each: each.name)
            ),
            failed=dict(sorted(failed.items(), key=lambda each: (-each[1], each[0]))),
            workers=await self._working([worker.name for worker in workers]),
            redis=redis,
        )

    async def _working(self, names: list[str]) -> tuple[WorkerGlance, ...]:
        calls = (
            self._client.workers.working(*names[first : first + A_CALL], most=1)
            for first in range(0, len(names), A_CALL)
        )
        found = [worker for some in await asyncio.gather(*calls) for worker in some]
        return tuple(sorted(found, key=lambda each: (each.seen < time.time() - SILENCE, each.name)))

    async def _info(self) -> Mapping[str, Any]:
        try:
            info: Mapping[str, Any] = await self._client.redis.info()
        except exceptions.NoPermissionError:
            return {}
        return info

    def _queue(self, counts: QueueOverview, rates: Rates) -> QueueSeen:
        done = self._rates.setdefault(counts.name, deque(maxlen=KEPT))
        done.append(rates.completed)
        return QueueSeen(counts=counts, rates=rates, done=tuple(done))
