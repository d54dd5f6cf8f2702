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

KEPT = 60  # looks
A_CALL = 100  # workers
SILENCE = 60  # seconds after which a worker comes behind those that are there
COUNTS = ("waiting", "running", "stalled", "scheduled", "depends")


@dataclass(frozen=True, kw_only=True)
class QueueSeen:
    """A queue: its counts, and how many jobs a second were done and failed since the look before;
    `done` at the latest looks."""

    name: str
    counts: Mapping[str, int]
    paused: bool
    rate: float = 0
    failing: float = 0
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
        return sum(queue.counts[count] for queue in self.queues)


class Looking:
    """Owns what was seen before, from which rates are made. A look is four calls, however much
    there is, and one for each hundred workers: of 1,000 queues and 1,000 workers at most."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._totals: dict[str, tuple[float, float]] = {}  # done, failed: today, at the look before
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
        passed = now - self._looked if self._looked is not None else None
        self._looked = now
        return Seen(
            when=time.time(),
            queues=tuple(
                self._queue(counts, passed)
                for counts in sorted(queues, key=lambda each: each["name"])
            ),
            failed=dict(sorted(failed.items(), key=lambda each: (-each[1], each[0]))),
            workers=await self._working([worker["name"] for worker in workers]),
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

    def _rate(self, told: Mapping[str, Any], passed: float | None) -> tuple[float, float]:
        """Done and failed a second since the look before; when a day ends the totals begin anew."""
        name, now = told["name"], (told["completed"], told["failures"])
        before = self._totals.get(name, now if passed is None else (0, 0))
        self._totals[name] = now
        if not passed or now[0] < before[0] or now[1] < before[1]:
            return 0, 0
        done, failed = ((now[each] - before[each]) / passed for each in (0, 1))
        return done, failed

    def _queue(self, counts: Mapping[str, Any], passed: float | None) -> QueueSeen:
        rate = self._rate(counts, passed)
        done = self._rates.setdefault(counts["name"], deque(maxlen=KEPT))
        done.append(rate[0])
        numbers = {count: int(counts[count]) for count in COUNTS}
        return QueueSeen(
            name=counts["name"],
            counts=numbers,
            paused=counts["paused"],
            rate=rate[0],
            failing=rate[1],
            done=tuple(done),
        )
