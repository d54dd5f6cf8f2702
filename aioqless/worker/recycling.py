"""How much a worker does before it makes room for a fresh one."""

from __future__ import annotations

import sys
from pathlib import Path

from aioqless.log import log
from aioqless.worker.settings import Settings

STATM = Path("/proc/self/statm")


class Share:
    """Owns the count of the jobs that were begun. Without `max_jobs` and `max_memory` it has no
    end."""

    def __init__(self, settings: Settings) -> None:
        self.done = False  # whether nothing more is to be begun
        self._left = settings.max_jobs
        self._memory = settings.max_memory

    def most(self, asked: int) -> int:
        """How many of the jobs that could be begun may be."""
        return asked if self._left is None else min(asked, self._left)

    def began(self, jobs: int) -> None:
        """Jobs were begun; see whether they were the last."""
        why = None
        if self._left is not None:
            self._left -= jobs
            if self._left <= 0:
                why = "it has begun as many jobs as it may"
        if self._memory is not None and (taken := memory()) > self._memory:
            why = f"it takes {taken >> 20} MiB"
        if why and not self.done:
            self.done = True
            log.info("worker.recycling", why=why)


def memory() -> int:
    """The bytes of memory that this process has in use; where the system doesn't tell, the most
    that it ever had."""
    import resource  # not on Windows

    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
