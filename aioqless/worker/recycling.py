"""Limits after which a worker recycles itself: `max_jobs` and `max_memory`."""

from __future__ import annotations

import sys
from pathlib import Path

from aioqless.runtime.log import log
from aioqless.worker.settings import RecycleLimits

STATM = Path("/proc/self/statm")


class Recycling:
    """Counts the jobs that have begun, and compares with the limits."""

    def __init__(self, limits: RecycleLimits) -> None:
        self.due = False  # no more jobs are to begin
        self._jobs_left = limits.max_jobs
        self._max_memory = limits.max_memory

    def cap(self, jobs: int) -> int:
        """Return how many of these jobs may begin."""
        return jobs if self._jobs_left is None else min(jobs, self._jobs_left)

    def count(self, jobs: int) -> None:
        """Count jobs that begin; recycling is due when a limit is reached."""
        why = None
        if self._jobs_left is not None:
            self._jobs_left -= jobs
            if self._jobs_left <= 0:
                why = "the maximum number of jobs has begun"
        if self._max_memory is not None and (used := memory_in_use()) > self._max_memory:
            why = f"the process uses {used >> 20} MiB"
        if why and not self.due:
            self.due = True
            log.info("worker.recycling", why=why)


def memory_in_use() -> int:
    """Return the process's memory in bytes; where the system does not tell, its peak."""
    import resource  # not on Windows

    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
