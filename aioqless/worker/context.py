"""WorkerContext: what the parts of one worker have in common; Lifecycle: how near its end is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aioqless.client import Client
from aioqless.runtime.log import log
from aioqless.store import ScriptStore
from aioqless.worker.outage import Outage
from aioqless.worker.settings import RecycleLimits, Settings

STATM = Path("/proc/self/statm")


class Lifecycle:
    """What the parts of one worker share about its end. Flags are never cleared."""

    def __init__(
        self,
        on_stopping: Callable[[], object] | None = None,
        recycle: RecycleLimits | None = None,
    ) -> None:
        recycle = recycle or RecycleLimits()
        self.recycling = False  # `max_jobs` or `max_memory` is reached: it is to stop
        self.stopping = False  # it pops no more, and ends when its runs have ended
        self.stopped_at = 0.0  # when `stopping` was set, by time.monotonic
        self.releasing = False  # it releases its runs, and waits for Redis only while locks last
        self.dropped = False  # outcomes were dropped since it is stopping
        self.jobs_left = recycle.max_jobs or sys.maxsize  # how many jobs may still begin
        # Pollers, by what wakes them, and how many jobs could begin when each last found nothing.
        self._found_empty: dict[Callable[[], object], int | None] = {}
        self._max_memory = recycle.max_memory
        self._on_stopping = on_stopping

    def count_jobs(self, jobs: int) -> None:
        """Count jobs that begin, and compare with the limits."""
        self.jobs_left -= jobs
        why = None
        if self.jobs_left <= 0:
            why = "the maximum number of jobs has begun"
        elif self._max_memory is not None and (used := memory_in_use()) > self._max_memory:
            why = f"the process uses {used >> 20} MiB"
        if why and not self.recycling:
            self.recycling = True
            log.info("worker.recycling", why=why)

    def add_poller(self, wake: Callable[[], object]) -> None:
        """Add a poller without which a burst doesn't end.

        Args:
            wake: Makes it poll soon; it is known by this.
        """
        self._found_empty[wake] = None

    def note_empty(self, wake: Callable[[], object]) -> bool:
        """Note that a poller found no job while none ran; wake pollers that must look again.

        Returns:
            Whether a burst has ended: every poller found nothing since the last job began.
        """
        self._found_empty[wake] = self.jobs_left
        stale = [each for each, at in self._found_empty.items() if at != self.jobs_left]
        for wake_stale in stale:
            wake_stale()
        return not stale

    def stop(self) -> bool:
        """Begin the shutdown; return whether it had not begun yet."""
        if self.stopping:
            return False
        self.stopping, self.stopped_at = True, time.monotonic()
        if self._on_stopping is not None:
            self._on_stopping()
        return True

    def note_dropped(self) -> None:
        """Note that an outcome was dropped."""
        self.dropped = self.dropped or self.stopping

    def release(self) -> None:
        """Release runs from now on instead of waiting for them."""
        self.releasing = True


@dataclass(frozen=True)
class WorkerContext:
    """What most parts of a worker need; none of it is ever replaced.

    Args:
        client: The client of the namespace.
        name: The worker's name in Redis.
        settings: How the worker behaves.
        outage: Whether Redis can be reached.
        lifecycle: Whether the worker is recycling or stopping.
    """

    client: Client
    name: str
    settings: Settings
    outage: Outage
    lifecycle: Lifecycle

    @property
    def store(self) -> ScriptStore:
        """The commands of the namespace, on the connection that the client shares."""
        return self.client.store


class Part(Protocol):
    """What runs beside a worker's jobs, from before the first to after the last.

    One that puts jobs has an attribute `caught_up`, too: while that is false, a burst does not end.
    """

    async def run(self, context: WorkerContext) -> None:
        """Work until canceled; an error stops the worker, and a return ends the part alone."""


def memory_in_use() -> int:
    """Return the process's memory in bytes; where the system does not tell, its peak."""
    import resource  # not on Windows

    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
